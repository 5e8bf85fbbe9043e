package prometheus

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/datawait/datawait/analysis/live"
)

// longest is how many bytes of a name a label holds. A job's name comes from its environment or its command line, which may hold
// megabytes; every series repeats it.
const longest = 200

// cut marks a name that was longer.
const cut = "…"

// Clean makes a label's value of a name that anybody may have given: valid UTF-8, as the exposition formats ask
// (prometheus.io/docs/instrumenting/exposition_formats, "Label values can be any sequence of UTF-8 characters"), of bounded length,
// and without characters that move the cursor or turn the text around where a person reads it. Two names may become the same.
func Clean(name string) string {
	if len(name) <= longest && !slices.ContainsFunc([]byte(name), beyondPrintableASCII) {
		return name
	}
	whole := true
	if most := 4 * longest; len(name) > most {
		name, whole = name[:most], false
	}
	name = strings.Map(legible, strings.ToValidUTF8(name, string(utf8.RuneError)))
	if whole && len(name) <= longest {
		return name
	}
	end := min(len(name), longest-len(cut))
	for end < len(name) && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + cut
}

// beyondPrintableASCII reports whether a name with such a byte has to be looked at; nearly none has.
func beyondPrintableASCII(b byte) bool { return b < ' ' || b > '~' }

func legible(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
		return utf8.RuneError
	}
	return r
}

// The labels of a tenant. Never job or instance: Prometheus sets those itself, and renames the exporter's to exported_job
// (prometheus.io/docs/prometheus/latest/configuration/configuration, honor_labels).
var tenantLabels = []string{"training_job", "training_namespace", "training_pod"}

func tenantAnd(label ...string) []string { return slices.Concat(tenantLabels, label) }

func tenantValues(t live.Tenant, more ...string) (v values) {
	v[0], v[1], v[2] = Clean(t.Job), Clean(t.Namespace), Clean(t.Pod)
	copy(v[3:], more)
	return v
}

// values are those of a subject's labels, in the order of its table; the rest is "".
type values [4]string

// pairs are labels as client_golang wants them: sorted by name.
func pairs(names, values []string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, len(names))
	for i := range names {
		out[i] = &dto.LabelPair{Name: &names[i], Value: &values[i]}
	}
	slices.SortFunc(out, byName)
	return out
}

func byName(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) }

// number is a whole number as a label's value, "" where it is not known.
func number[N int | int64](n N, known bool) string {
	if !known {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}
