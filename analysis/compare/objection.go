package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/probe/unit"
)

// fewSteps is the number of steady steps below which a step is not compared: a run of a few dozen has no steady state.
const fewSteps = 20

// differs says what keeps two runs from being alike in one respect; "" where they are, as far as is known.
var differs = map[alike]func(b, a side) string{
	sameRanks:   otherRanks,
	sameBatch:   otherBatch,
	sameDataset: otherDataset,
	sameGPU:     otherGPU,
	sameStep:    otherStep,
	trustedGPU:  untrusted,
	enoughSteps: tooFew,
	sameBytes:   otherBytes,
}

// order is that of the objections.
var order = []alike{enoughSteps, trustedGPU, sameGPU, sameRanks, sameBatch, sameDataset, sameStep, sameBytes}

func otherRanks(b, a side) string {
	if b.Job.Ranks == a.Job.Ranks {
		return ""
	}
	return fmt.Sprintf("%s before, %s after: they share cores and storage, and train on another number of samples at once", ranks(b.Job.Ranks), ranks(a.Job.Ranks))
}

func ranks(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", n)
}

func otherBatch(b, a side) string {
	x, known := b.samples().Get()
	y, also := a.samples().Get()
	if !known || !also || near(x, y, 0.01) {
		return ""
	}
	return fmt.Sprintf("a step takes %s before and %s after: it is other work", samples(x), samples(y))
}

func samples(n float64) string {
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%.4g samples", n)
}

func otherDataset(b, a side) string {
	x, known := b.epochSamples().Get()
	y, also := a.epochSamples().Get()
	if known && also {
		slack := b.Job.SamplesPerBatch.Or(0)*float64(b.Job.Ranks) + a.Job.SamplesPerBatch.Or(0)*float64(a.Job.Ranks) // of a last batch that is not full
		if near(x, y, 0.01) || b.otherSize(a) && math.Abs(x-y) <= slack {
			return ""
		}
		return fmt.Sprintf("an epoch has %.6g samples before and %.6g after", x, y)
	}
	n, _ := b.batches().Get()
	m, _ := a.batches().Get()
	if n == m && b.Job.Ranks == a.Job.Ranks {
		return ""
	}
	return "how many samples an epoch has is not known of both runs, and their numbers of batches differ"
}

// otherSize reports whether the sizes of batches differ, so that the last one cuts an epoch at another place.
func (s side) otherSize(o side) bool {
	return !near(s.Job.SamplesPerBatch.Or(0), o.Job.SamplesPerBatch.Or(0), 1e-9) || s.Job.Ranks != o.Job.Ranks
}

func otherGPU(b, a side) string {
	x, y := b.models(), a.models()
	if len(x) == 0 || len(y) == 0 || slices.Equal(x, y) {
		return ""
	}
	return fmt.Sprintf("the GPUs are other models: %s before, %s after", strings.Join(x, " and "), strings.Join(y, " and "))
}

func otherStep(b, a side) string {
	if b.Job.StepIs != a.Job.StepIs {
		return fmt.Sprintf("what counts as a step differs: one %s before, one %s after", word(b.Job.StepIs), word(a.Job.StepIs))
	}
	return ""
}

func word(stepIs string) string {
	if stepIs == "" {
		return "step of an unknown kind"
	}
	return stepIs
}

func untrusted(b, a side) string {
	for _, s := range []struct {
		side
		when string
	}{{b, "before"}, {a, "after"}} {
		for _, v := range s.Verdicts {
			if v.ID == "metric-untrusted" {
				return "the GPU counters of the run " + s.when + " contradict themselves"
			}
		}
	}
	return ""
}

func tooFew(b, a side) string {
	for _, s := range []struct {
		side
		when string
	}{{b, "before"}, {a, "after"}} {
		if n := s.Step.N; n < fewSteps && s.Step.MeanSeconds.IsKnown() {
			return fmt.Sprintf("the run %s has %d steady steps; %d are the least that a step is compared on", s.when, n, fewSteps)
		}
	}
	return ""
}

func otherBytes(b, a side) string {
	if b.loader == nil || a.loader == nil {
		return ""
	}
	x, y := b.loader.BytesSource == analysis.AtLeast, a.loader.BytesSource == analysis.AtLeast
	switch {
	case x && y:
		return "both are lower bounds: what came over sockets, mmap or FUSE is in neither"
	case x:
		return "the bytes before are a lower bound, those after are not"
	case y:
		return "the bytes after are a lower bound, those before are not"
	}
	return ""
}

// near reports whether two positive numbers differ by no more than a part of the larger.
func near(x, y, part float64) bool { return math.Abs(x-y) <= part*math.Max(x, y) }

// whole is what keeps two runs from being compared at all; "" for nothing.
func whole(b, a side) string {
	if b.Emulated == a.Emulated {
		return ""
	}
	kinds := map[bool]string{true: "an emulated", false: "a real"}
	return fmt.Sprintf("the run before had %s GPU, the run after %s one: nothing of the one holds for the other", kinds[b.Emulated], kinds[a.Emulated])
}

// remarks are what a reader must know, though it keeps no row from being compared.
func remarks(b, a side) []Objection {
	out := []Objection{}
	add := func(id, format string, values ...any) {
		out = append(out, Objection{ID: id, Text: fmt.Sprintf(format, values...), Rows: []string{}})
	}
	if identity(b) == identity(a) {
		add("same-run", "both are the same run")
	}
	if b.Job.Name != a.Job.Name && b.Job.Name != "" && a.Job.Name != "" {
		add("script", "the programs have different names, %s and %s; whether they train the same model is not known", b.Job.Name, a.Job.Name)
	}
	if text := otherWork(b, a); text != "" {
		add("step-work", "%s", text)
	}
	for _, s := range []struct {
		side
		when string
	}{{b, "before"}, {a, "after"}} {
		foreign, known := s.Host.ForeignCores.Get()
		cores, also := s.Host.Cores.Get()
		if known && also && cores > 0 && foreign >= busy*cores {
			add("busy-machine", "other programs kept %.2g of %.3g cores busy during the run %s; no interval accounts for that", foreign, cores, s.when)
		}
		if d := s.Quality.Damage; d.Unfinished || d.BadFiles > 0 {
			add("damaged", "the recording of the run %s is incomplete", s.when)
		}
	}
	if x, y := b.sources(), a.sources(); x != "" && y != "" && x != y {
		add("gpu-source", "SM activity comes from %s before and %s after", x, y)
	}
	if b.Version != a.Version {
		add("version", "the results were made by different versions of datawait, %s and %s", b.Version, a.Version)
	}
	return out
}

// busy is the part of a machine's cores from which the work of others is worth a word.
const busy = 0.25

func (s side) sources() string {
	var names []string
	for _, g := range s.Result.GPUs {
		if g.Source != "" && !slices.Contains(names, g.Source) {
			names = append(names, g.Source)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// otherWork tells that a step is other work, as the time with its batches in memory shows.
func otherWork(b, a side) string {
	x, known := b.leg("host-cached").StepSeconds.Get()
	y, also := a.leg("host-cached").StepSeconds.Get()
	if !known || !also || otherBatch(b, a) != "" || !finite(x.Value, x.Low, x.High, y.Value, y.Low, y.High) {
		return ""
	}
	d := difference(x, y)
	if d.Low <= 0 && d.High >= 0 || near(x.Value, y.Value, 0.05) {
		return ""
	}
	return fmt.Sprintf("with its batches in memory a step takes %s before and %s after: besides the input pipeline, its own work changed",
		phrase.Duration(x.Value), phrase.Duration(y.Value))
}

// startUp is the part of the allocated time in which the training had not begun.
func (s side) startUp() analysis.Ratio {
	var idle, all float64
	for _, g := range s.Result.GPUs {
		idle += float64(g.AccountsNS["startup"] + g.AccountsNS["not_held"])
		all += float64(g.AllocatedNS)
	}
	if !(all > 0) {
		return unit.None[float64]("no GPU was sampled")
	}
	return unit.Some(idle / all)
}

// smNote says that SM activity of the allocated time is that of the start-up as well, where its part differs.
func smNote(b, a side) string {
	x, known := b.startUp().Get()
	y, also := a.startUp().Get()
	if !known || !also || math.Abs(x-y) < 0.03 {
		return ""
	}
	return fmt.Sprintf("start-up is %.0f %% of the allocated time before and %.0f %% after", 100*x, 100*y)
}
