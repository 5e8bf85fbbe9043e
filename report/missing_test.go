package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/markdown"
	"github.com/datawait/datawait/report/terminal"
)

// shownZero finds a number that reads as nothing: "0 %", "0.0 ms", "0 cores".
var shownZero = regexp.MustCompile(`(^|[^\d.,<])−?0(\.0+)?[ \x{00a0}](%|[nµm]?s\b|cores|[KMGT]?i?B\b|GPU-)`)

// noNumber finds what is no number, or a value that slipped through formatting.
var noNumber = regexp.MustCompile(`NaN|[+-]Inf\b|%!|<nil>|\(MISSING\)`)

// Where every number of a job is missing, no number is shown: there are words in its place.
func TestMissingIsWords(t *testing.T) {
	r := sample.Retail()
	withoutZeros(reflect.ValueOf(r).Elem())
	drop(reflect.ValueOf(r).Elem(), func() bool { return true })
	for name, s := range shown(t, r) {
		if m := shownZero.FindString(s); m != "" {
			t.Errorf("%s shows %q for a missing value", name, m)
		}
		if !strings.Contains(s, "unknown") {
			t.Errorf("%s says of nothing that it is unknown", name)
		}
	}
}

// Whatever is missing, no form of the report shows a zero in its place, or something that is no number, and none fails.
func TestAnyMissing(t *testing.T) {
	for seed := range uint64(8) {
		checkDropped(t, seed, "train.py")
	}
}

func FuzzMissing(f *testing.F) {
	f.Add(uint64(1), "train.py")
	f.Add(uint64(2), "<b>|`\x1b[2J\u202e")
	f.Fuzz(func(t *testing.T, seed uint64, name string) { checkDropped(t, seed, name) })
}

func checkDropped(t *testing.T, seed uint64, name string) {
	t.Helper()
	all := sample.All()
	random := rand.New(rand.NewPCG(seed, 1))
	r := all[random.IntN(len(all)-1)].Result // not the empty one: its zeros are nobody's measurement
	r.Job.Name, r.Loaders = name, append(r.Loaders, analysis.Loader{Dataset: name})
	withoutZeros(reflect.ValueOf(r).Elem())
	rate := random.Float64()
	drop(reflect.ValueOf(r).Elem(), func() bool { return random.Float64() < rate })
	for form, s := range shown(t, r) {
		if m := shownZero.FindString(s); m != "" {
			t.Errorf("seed %d: %s shows %q for a missing value", seed, form, m)
		}
		if m := noNumber.FindString(s); m != "" {
			t.Errorf("seed %d: %s shows %q", seed, form, m)
		}
	}
}

// shown renders every form and returns the words of each.
func shown(t *testing.T, r *analysis.Result) map[string]string {
	t.Helper()
	files, err := Render(r, []Format{HTML, JSON})
	if err != nil {
		t.Fatal(err)
	}
	var screen, ticket bytes.Buffer
	if err := Terminal(&screen, r, terminal.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := markdown.Write(&ticket, NewView(r), markdown.Options{}); err != nil {
		t.Fatal(err)
	}
	page := picture.ReplaceAllString(string(files["report.html"]), "$1")
	page = page[strings.Index(page, "</style>"):]
	return map[string]string{"the screen": screen.String(), "the page": page, "the ticket": ticket.String()}
}

// withoutZeros replaces every measured zero, so that a zero that is shown can only stand for something missing.
func withoutZeros(v reflect.Value) {
	walk(v, func(m reflect.Value) {
		get := m.MethodByName("Get").Call(nil)
		if !get[1].Bool() {
			return
		}
		x := reflect.New(get[0].Type()).Elem()
		x.Set(get[0])
		plainZeros(x)
		m.Set(some(m, x))
	}, plainZeros)
}

func plainZeros(x reflect.Value) {
	switch x.Kind() {
	case reflect.Float64:
		if f := x.Float(); f == 0 || math.Abs(f) < 0.001 {
			x.SetFloat(0.5)
		}
	case reflect.Int, reflect.Int64:
		if x.Int() == 0 {
			x.SetInt(1)
		}
	case reflect.Struct:
		for i := range x.NumField() {
			if x.Field(i).CanSet() {
				plainZeros(x.Field(i))
			}
		}
	}
}

// drop makes values missing, in each of the ways in which they can be.
func drop(v reflect.Value, choose func() bool) {
	n := 0
	walk(v, func(m reflect.Value) {
		if !choose() {
			return
		}
		n++
		m.Set(absent(m, n))
	}, func(x reflect.Value) {
		if x.Kind() == reflect.Float64 && choose() && choose() {
			x.SetFloat([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[n%3])
		}
	})
}

// walk visits every unit.Maybe and every plain number below v that can be set.
func walk(v reflect.Value, maybe, plain func(reflect.Value)) {
	if strings.HasPrefix(v.Type().String(), "unit.Maybe[") {
		maybe(v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), maybe, plain)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "Damage" { // counts of damage may be zero
				walk(v.Field(i), maybe, plain)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), maybe, plain)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(v.MapIndex(k))
			walk(x, maybe, plain)
			v.SetMapIndex(k, x)
		}
	default:
		plain(v)
	}
}

func some(m, x reflect.Value) reflect.Value {
	switch x := x.Interface().(type) {
	case float64:
		return reflect.ValueOf(unit.Some(x))
	case int:
		return reflect.ValueOf(unit.Some(x))
	case int64:
		return reflect.ValueOf(unit.Some(x))
	}
	return m // estimates and texts: their zeros are left to the samples, which have none
}

func absent(m reflect.Value, n int) reflect.Value {
	var zero any = m.Interface()
	switch zero.(type) {
	case analysis.Ratio:
		return reflect.ValueOf([]analysis.Ratio{unit.None[float64]("nobody looked"), unit.NotSupported[float64]("not on this machine"), unit.Broken[float64](""), {}}[n%4])
	case analysis.Est:
		return reflect.ValueOf([]analysis.Est{{}, missingEst("nobody looked")}[n%2])
	}
	return reflect.Zero(m.Type())
}

func missingEst(why string) analysis.Est {
	var e analysis.Est
	if err := e.UnmarshalJSON([]byte("null")); err != nil || e.IsKnown() {
		panic(why)
	}
	return e
}
