package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/fleet"
)

// Fleet is what counts as a finding in a fleet: jobs that lose much of what they were allocated. The zero Fleet counts nothing.
type Fleet struct {
	conditions []losing
}

// losing is one item of the list: a kind of loss from a share of the allocated GPU-hours on.
type losing struct {
	what  string
	share float64
}

// loss is a kind of loss, and where it is.
type loss struct {
	name string
	of   func(fleet.Use) analysis.Ratio
}

var losses = []loss{
	{"lost", func(u fleet.Use) analysis.Ratio { return u.Lost.Hours }},
	{"waiting", func(u fleet.Use) analysis.Ratio { return u.Waiting.Hours }},
	{"idle", func(u fleet.Use) analysis.Ratio { return u.Idle.Hours }},
}

// anyLoss is the share from which a loss counts where none is given, and leastHours what a job must have had to be judged.
const (
	anyLoss    = 0.1
	leastHours = 1
)

// Losses returns the names that --fail-on accepts of a fleet.
func Losses() (names []string) {
	for _, l := range losses {
		names = append(names, l.name)
	}
	return names
}

// ParseFleet reads a list such as "20%" or "waiting=20%,idle=50%". A share alone is of what is lost together.
func ParseFleet(list string) (Fleet, error) {
	var g Fleet
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if share, err := parseShare(item); err == nil {
			g.conditions = append(g.conditions, losing{"lost", share})
			continue
		}
		name, text, limited := strings.Cut(item, "=")
		if !slices.Contains(Losses(), name) {
			return Fleet{}, fmt.Errorf("%q is neither a share such as 20%% nor a kind of loss", item)
		}
		c := losing{name, anyLoss}
		if limited {
			share, err := parseShare(text)
			if err != nil {
				return Fleet{}, fmt.Errorf("%q: %w", item, err)
			}
			c.share = share
		}
		g.conditions = append(g.conditions, c)
	}
	return g, nil
}

// Findings returns a sentence for every job that loses too much, and an error for a condition of which no job's loss is known.
func (g Fleet) Findings(f *fleet.Fleet) (found []string, err error) {
	for _, c := range g.conditions {
		judged := 0
		for _, w := range f.Workloads {
			sentence, known := c.judge(w)
			if known {
				judged++
			}
			if sentence != "" {
				found = append(found, sentence)
			}
		}
		if judged == 0 && err == nil {
			err = fmt.Errorf("judging --fail-on %s=%s: it is known of no job that had a GPU-hour", c.what, percent(c.share))
		}
	}
	return found, err
}

func (c losing) judge(w fleet.Workload) (sentence string, known bool) {
	i := slices.IndexFunc(losses, func(l loss) bool { return l.name == c.what })
	lost, known := losses[i].of(w.Use).Get()
	all, allocated := w.Use.Allocated.Get()
	if !known || !allocated || all < leastHours {
		return "", false
	}
	if lost < c.share*all {
		return "", true
	}
	name := w.Job
	if w.Namespace != "" {
		name = w.Namespace + "/" + w.Job
	}
	return fmt.Sprintf("%q: %s of its GPU-hours (%s), at or above %s", name, percent(lost/all), c.what, percent(c.share)), true
}
