package verdict

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// TestHostile: whatever is missing, absurd or not a number, nothing panics and everything that is said can be written as JSON
// (which refuses NaN and infinities).
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	trusted := 0
	for i := range 4000 {
		p := jobs[r.IntN(len(jobs))].job.Parameters()
		spoil(r, reflect.ValueOf(&p).Elem(), []float64{0.02, 0.1, 0.5}[i%3])
		p.Args.Workers += r.IntN(3) * (r.IntN(3) - 1)
		m := loader.New(p)
		m.Draws = 4
		if m.Trusted {
			trusted++
		}
		f := trained
		f.Steady = r.IntN(4) > 0
		for name, v := range map[string]any{"verdicts": Judge(f, m), "fixes": fixes.Rank(m), "model": m.Summary()} {
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%s of %+v: %v", name, p, err)
			}
		}
	}
	if trusted < 300 {
		t.Errorf("only %d of 4000 were trusted: the test tests little", trusted)
	}
}

var absurd = []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e-300, 1e300, 1e6}

// spoil forgets or falsifies some fields.
func spoil(r *rand.Rand, v reflect.Value, chance float64) {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Struct && f.Type().PkgPath() == reflect.TypeFor[loader.Parameters]().PkgPath() {
			spoil(r, f, chance)
			continue
		}
		if r.Float64() > chance {
			continue
		}
		x := absurd[r.IntN(len(absurd))]
		switch f.Interface().(type) {
		case loader.Num:
			f.Set(reflect.ValueOf(unit.Some(x)))
		case loader.Est:
			f.Set(reflect.ValueOf(unit.Some(stat.Estimate{Value: x, Low: absurd[r.IntN(len(absurd))], High: x, N: r.IntN(100)})))
		default:
			continue
		}
		if r.IntN(2) == 0 {
			f.SetZero()
		}
	}
}

// TestTwice: the same measurements give the same answer.
func TestTwice(t *testing.T) {
	p := scenario.S06().Parameters()
	say := func() string {
		m := loader.New(p)
		b, _ := json.Marshal([]any{Judge(trained, m), fixes.Rank(m), m.Summary()})
		return string(b)
	}
	if a, b := say(), say(); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}
