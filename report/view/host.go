package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
)

// host is what the machine around the job did; nothing where it was not looked at.
func host(r *analysis.Result) []Fact {
	h := r.Host
	facts := []Fact{
		{"Cores", listing("",
			part{"usable", cores(h.UsableCores)}, part{"in the machine", cores(h.Cores)}, part{"allowed by the limit", cores(h.QuotaCores)})},
		{"Busy", listing("",
			part{"by this job", cores(h.JobCores)}, part{"by others", cores(h.ForeignCores)}, part{"in all", cores(h.BusyCores)}, part{"more wanted by waiting workers", cores(h.WorkerRunQueue)})},
		{"Held back", listing("",
			part{"of the time by the CPU limit", share(h.ThrottledRatio)}, part{"of the time some task waited for a core", share(h.CPUPressure)},
			part{"for storage", share(h.IOPressure)}, part{"for memory", share(h.MemoryPressure)})},
		{"Read", listing(" a second", part{"from disks", scaled(h.ReadBytesRate, byteScales)}, part{"received from the network", scaled(h.ReceivedRate, byteScales)})},
	}
	var out []Fact
	for _, f := range facts {
		if f.Text != "" {
			out = append(out, f)
		}
	}
	return out
}

// part is a quantity and the words behind it.
type part struct {
	words string
	q     Quantity
}

// listing writes what is known of parts; what is missing is left to the gaps. per stands between a number and its words.
func listing(per string, parts ...part) string {
	var out []string
	for _, p := range parts {
		if p.q.Known {
			out = append(out, p.q.Text+per+" "+p.words)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, ", ") + "."
}

// bounds gives the terms of the loader's law: what a step cannot be shorter than, and which of them binds.
func bounds(r *analysis.Result) string {
	st, _ := stepStyle(r)
	m := r.Model
	s := listing("",
		part{"for computing", ratio(m.ComputeSeconds, st)}, part{"for building batches with these workers", ratio(m.WorkerSeconds, st)},
		part{"for their CPU time on these cores", ratio(m.CoreSeconds, st)}, part{"for what workers share", ratio(m.SharedSeconds, st)})
	if s == "" {
		return "Unknown: the model has no terms."
	}
	if words, ok := limits[m.Binding]; ok {
		s += " The step is " + words + "."
	}
	return s
}
