package verdict

import (
	"sort"
	"strings"

	"github.com/datawait/datawait/analysis/loader"
)

// Findings is what was found, most important first, and what was considered and rejected.
type Findings struct {
	Verdicts []Verdict
	Dropped  []Dropped
}

// opinion is what a signature makes of a subject: a verdict, or the reason why not. The zero opinion says nothing.
type opinion struct {
	verdict Verdict
	found   bool
	weight  float64 // importance; the share unless said otherwise
	dropped string
}

// Judge holds every signature against the job.
func Judge(f Facts, m loader.Model) Findings {
	s := newSubject(f, m)
	if v, ok := s.blind(); ok {
		return Findings{Verdicts: sentences(v), Dropped: []Dropped{}}
	}
	out := Findings{Verdicts: []Verdict{}, Dropped: []Dropped{}}
	var found []opinion
	for _, sig := range signatures {
		o := sig.judge(s)
		switch {
		case o.found:
			o.verdict.ID = sig.id
			found = append(found, o)
		case o.dropped != "":
			out.Dropped = append(out.Dropped, Dropped{ID: sig.id, Reason: o.dropped})
		}
	}
	sort.SliceStable(found, func(i, k int) bool { return found[i].weight > found[k].weight })
	for _, o := range found {
		out.Verdicts = append(out.Verdicts, o.verdict)
	}
	out.Verdicts = sentences(append(out.Verdicts, s.nothingElse(out.Verdicts)...))
	return out
}

// sentences begins titles with a capital letter.
func sentences(list []Verdict) []Verdict {
	for i := range list {
		if t := list[i].Title; t != "" {
			list[i].Title = strings.ToUpper(t[:1]) + t[1:]
		}
	}
	return list
}

// find makes an opinion of a verdict; the share is its weight.
func find(v Verdict, share float64) opinion {
	v.Share = known(share)
	return opinion{verdict: v, found: true, weight: share}
}

// drop makes an opinion of a reason.
func drop(reason string) opinion { return opinion{dropped: reason} }
