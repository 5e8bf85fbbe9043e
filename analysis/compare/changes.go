package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// changes lists what was made otherwise in the second run, as far as the recordings tell: the arguments of the training's loader, its
// dataset, the command, the ranks and what the machine lends.
func changes(b, a side) []Change {
	out := []Change{}
	add := func(what, before, after string) {
		if before != after && before != "" && after != "" {
			out = append(out, Change{what, before, after})
		}
	}
	if b.loader != nil && a.loader != nil {
		names := map[string]bool{}
		for name := range b.loader.Arguments {
			names[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			add(name, plainWord(b.argument(name)), plainWord(a.argument(name)))
		}
		add("dataset", b.loader.Dataset, a.loader.Dataset)
	}
	x, y := commandsApart(b.Job.Command, a.Job.Command)
	if len(x)+len(y) > 0 {
		out = append(out, Change{"command", orNothing(x), orNothing(y)})
	}
	add("ranks", fmt.Sprint(b.Job.Ranks), fmt.Sprint(a.Job.Ranks))
	add("gpu", strings.Join(b.models(), ", "), strings.Join(a.models(), ", "))
	if n, m, known := usable(b, a); known && !near(n, m, 0.05) {
		add("usable_cores", fmt.Sprintf("%.3g", n), fmt.Sprintf("%.3g", m))
	}
	return out
}

func usable(b, a side) (before, after float64, known bool) {
	before, known = b.Host.UsableCores.Get()
	after, also := a.Host.UsableCores.Get()
	return before, after, known && also
}

// plainWord writes an argument as Python would; "" where it was not recorded.
func plainWord(raw string) string {
	var s string
	switch {
	case raw == "null":
		return "None"
	case raw == "true":
		return "True"
	case raw == "false":
		return "False"
	case json.Unmarshal([]byte(raw), &s) == nil:
		return s
	}
	return raw
}

// commandsApart returns the words of each command that the other lacks, in their order; the value of a flag with its flag.
func commandsApart(b, a []string) (before, after []string) {
	return without(b, a), without(a, b)
}

func without(words, others []string) (out []string) {
	left := map[string]int{}
	for _, w := range others {
		left[w]++
	}
	flag := "" // the word before, where it is a flag that both have
	for _, w := range words {
		if left[w] > 0 {
			left[w]--
			flag = ""
			if strings.HasPrefix(w, "-") {
				flag = w
			}
			continue
		}
		if flag != "" && !strings.HasPrefix(w, "-") {
			out = append(out, flag)
		}
		out, flag = append(out, w), ""
	}
	return out
}

func orNothing(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " ")
}
