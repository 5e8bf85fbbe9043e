package analysis

import (
	"fmt"
	"maps"
	"slices"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/verdict"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// quality says how far the numbers can be believed, and what it cost to get them.
func (r *run) quality() {
	q := &r.out.Quality
	r.damage(q)
	r.hook(q)
	r.coverage(q)
	q.Clock = ClockQuality{ResidualSeconds: r.residual(), GPULagSeconds: r.lag()}
	q.OwnCost = r.ownCost()
	q.Warnings = append([]string{}, r.warnings()...)
}

func (r *run) damage(q *Quality) {
	d := r.job.Reading.Damage
	q.Damage = DamageReport{BadFiles: d.BadFiles, TornTails: int(d.TornTails), BadFrames: int(d.BadFrames + d.UnknownFrames),
		Undeclared: d.Undeclared, LostNotes: d.BadNotes + d.DroppedNotes, UnknownKinds: d.UnknownKinds, Torn: d.Torn, Lost: d.Lost,
		Contradicted: uint64(r.job.Reading.Bad)}
	for _, n := range r.job.Nodes {
		if n.Manifest.Format != "" && !n.Manifest.EndedAt.IsKnown() {
			q.Damage.Unfinished = true
		}
	}
}

func (r *run) hook(q *Quality) {
	q.Hook = HookQuality{Records: r.job.Reading.Records, Dropped: r.job.Reading.Damage.Lost + r.job.Reading.Damage.Torn, Errors: []string{},
		AddedSeconds: r.hookCost()}
	seen := map[string]bool{}
	tell := func(text string) {
		if !seen[text] && len(q.Hook.Errors) < 32 {
			seen[text] = true
			q.Hook.Errors = append(q.Hook.Errors, text)
		}
	}
	for _, k := range append(append([]*load.Rank{}, r.job.Ranks...), r.job.Others...) {
		for _, m := range k.Marks {
			q.Hook.Disabled = q.Hook.Disabled || m.Code == recording.MarkHookDisabled
		}
		for _, e := range k.Notes.HookErrors {
			tell(fmt.Sprintf("%s: %s", e.Where, e.Error))
		}
	}
	for _, e := range r.job.WorkerErrors {
		tell(fmt.Sprintf("in a worker, %s: %s", e.Where, e.Error))
	}
}

// hookCost is what the hook took of a fetch, by its own clock; in loops faster than a millisecond from samples.
func (r *run) hookCost() Ratio {
	var taken mean
	for _, k := range r.job.Ranks {
		for _, c := range k.Notes.HookCosts {
			taken.add(float64(c.NS)/1e9, float64(c.Fetches))
		}
	}
	return taken.value("the hook did not time itself in this run")
}

func (r *run) coverage(q *Quality) {
	q.GPU.WindowSeconds = unit.None[float64](noWindow)
	q.GPU.Coverage = unit.None[float64](noWindow)
	var covered, allocated, length float64
	windows := 0
	for _, d := range r.devices {
		c := d.ladder
		covered += float64(c.covered)
		allocated += float64(d.books.Allocated)
		windows += d.counted
		length += d.length
		if q.GPU.Why == "" {
			q.GPU.Why = d.Note.Why
		}
	}
	if windows > 0 {
		q.GPU.WindowSeconds = unit.Some(length / float64(windows) / 1e9)
		q.GPU.Coverage = quotient(covered, allocated, noWindow)
	}
	trouble := r.trouble()
	switch {
	case len(r.devices) == 0 && r.foreign > 0:
		q.GPU.Why = r.leftOut()
	case len(r.devices) == 0 && trouble != "":
		q.GPU.Why = "no GPU was watched: " + trouble
	case len(r.devices) == 0:
		q.GPU.Why = "no GPU was watched"
	case q.GPU.Why == "":
		q.GPU.Why = trouble
	}
}

// residual is how far clocks are known to disagree: the clock pairs of a node among themselves.
func (r *run) residual() Ratio {
	worst := load.Unknown
	for _, n := range r.job.Nodes {
		worst = max(worst, n.Drift)
	}
	if worst == load.Unknown {
		return unit.None[float64]("fewer than two clock pairs were recorded")
	}
	return unit.Some(float64(worst) / 1e9)
}

// lag is how late the counters of any GPU were.
func (r *run) lag() Ratio {
	worst := int64(0)
	for _, d := range r.devices {
		if abs(d.lag) > abs(worst) {
			worst = d.lag
		}
	}
	if len(r.devices) == 0 {
		return unit.None[float64]("no GPU was watched")
	}
	return unit.Some(float64(worst) / 1e9)
}

// ownCost adds up what the agents' processes say of themselves. What a probe takes is part of its process's, and tells no memory. A
// child that was started again is one process after another, so both are means over the longest time that any was watched.
func (r *run) ownCost() OwnCost {
	var cores, rss float64
	any := false
	for _, n := range r.job.Nodes {
		var cpu, held, longest float64
		for _, key := range slices.SortedFunc(maps.Keys(n.Usage.Sources), load.Source.Compare) {
			s := n.Usage.Sources[key]
			bytes, seconds := s.Sum(load.SourceRSS, nil)
			used, _ := s.Sum(load.SourceCPU, nil)
			if seconds > 0 {
				cpu, held, longest = cpu+used, held+bytes, max(longest, seconds)
			}
		}
		if longest > 0 {
			cores, rss, any = cores+cpu/longest, rss+held/longest, true
		}
	}
	if !any {
		return OwnCost{unit.None[float64](noAgent), unit.None[float64](noAgent)}
	}
	return OwnCost{unit.Some(cores), unit.Some(rss)}
}

// warnings are sentences for whoever reads the report.
func (r *run) warnings() (all []string) {
	all = append(all, r.warn...)
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, n := range r.job.Nodes {
		all = append(all, n.Manifest.Warnings...)
		for i := range n.Notes {
			for _, g := range n.Notes[i].SaveGuards {
				warn("a child of a rank on %s was stopped before it could save or delete: %s %s", n.Host, g.Call, g.Target)
			}
		}
		if !n.Clocked && len(r.job.Nodes) > 1 {
			warn("%s never read its wall clock: it is taken to have begun with the others", n.Host)
		}
	}
	if lost := r.job.Reading.Damage.Lost + r.job.Reading.Damage.Torn; lost > 0 {
		warn("%d records of the hook were overwritten before they were read: steps are missing, totals are not", lost)
	}
	if d := r.job.Reading.Damage; d.TornTails+d.BadFrames+d.UnknownFrames+d.Undeclared+d.BadFiles > 0 {
		warn("the recording is damaged, and what could not be read is missing: %v", d)
	}
	if r.job.Reading.Bad > 0 {
		warn("%d records contradict themselves and were left out", r.job.Reading.Bad)
	}
	if r.job.Reading.Orphans > 0 {
		warn("%d batches were built by workers that no loader claims", r.job.Reading.Orphans)
	}
	for _, k := range r.ranked {
		if k.guessed() {
			warn("rank %d did not say which GPU it uses: taken in the order of ranks", k.Number)
		}
		for _, g := range k.Notes.SaveGuards {
			warn("rank %d was stopped before it could save or delete: %s %s", k.Number, g.Call, g.Target)
		}
	}
	all = append(all, r.besides()...)
	all = append(all, r.otherWindows()...)
	all = append(all, r.troubled()...)
	if r.foreign > 0 {
		warn("%s", r.leftOut())
	}
	if world := r.world(); world > r.out.Job.Ranks && r.out.Job.Ranks > 0 {
		warn("%d of %d ranks were recorded", r.out.Job.Ranks, world)
	}
	return all
}

// leftOut says that GPUs are not looked at.
func (r *run) leftOut() string {
	if len(r.devices) == 0 {
		return fmt.Sprintf("no GPU of this job was watched: %s seen and left out, for ranks say that they use others, or processes that are not the job's hold them",
			phrase.Count(float64(r.foreign), "GPU"))
	}
	return fmt.Sprintf("%d GPUs beside those that ranks run on were watched and are left out: nothing says that they are assigned to this job", r.foreign)
}

// besides says what else may feed a job whose fetches are seen: a loader that is not, or another rank.
func (r *run) besides() (all []string) {
	if r.unfed() {
		return nil // the verdict says so
	}
	for _, l := range r.out.Loaders {
		if l.Role == "training" && l.Kind == "watch" {
			return nil // watch() is around it
		}
	}
	for _, module := range r.otherLoaders() {
		if verdict.AlwaysTrains(module) {
			all = append(all, fmt.Sprintf("the job imports %s too: what training waits for its batches, if it does, is not in these numbers; %s",
				verdict.LoaderName(module), verdict.WatchLine([]string{module})))
		}
	}
	for _, k := range r.ranked {
		if k.unfed() {
			all = append(all, fmt.Sprintf("rank %d makes steps and fetches nothing: its batches come from another rank, and its wait for them is not known", k.Number))
		} else if !k.byFetch && k.without > 0 && len(k.Gaps) == 0 && 4*k.without >= k.made {
			all = append(all, fmt.Sprintf("rank %d made %d of %d steps without a fetch before them: unless they were made on the batch before once more, its wait for theirs is not in these numbers; %s",
				k.Number, k.without, k.made, verdict.WatchLine(nil)))
		}
	}
	return all
}

// world is how many ranks the launcher speaks of.
func (r *run) world() (most int) {
	for _, k := range r.ranked {
		if w := k.Declaration.WorldSize; w != nil && *w < 1<<20 {
			most = max(most, *w)
		}
	}
	return most
}

// otherWindows says where counters came in windows clearly other than was asked for: a watch is shared, and the shortest wish counts.
func (r *run) otherWindows() []string {
	for _, d := range r.devices {
		asked, ok := d.Note.Interval.Get()
		if !ok || asked == 0 || d.counted < 10 || d.Uncounted {
			continue
		}
		if got := d.length / float64(d.counted); got > 1.5*float64(asked) || got < float64(asked)/1.5 {
			return []string{fmt.Sprintf("counter windows are %.3g s long where %.3g s were asked for (a watch of the host engine is shared with other programs)", got/1e9, float64(asked)/1e9)}
		}
	}
	return nil
}
