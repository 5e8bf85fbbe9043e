// Package stat is the arithmetic of doubt: sums over sums, intervals, and an [Estimate] that never travels without its n,
// its spread, its source and its grade.
package stat

// Grade says how good the evidence of a number is (DESIGN: evidence grade).
type Grade string

const (
	GradeA Grade = "A" // the GPU's own counters or clock
	GradeB Grade = "B" // one source, or coarse
	GradeC Grade = "C" // inferred, or an upper bound
)

// Worse returns the weaker of two grades; a number is as good as its worst input.
func Worse(a, b Grade) Grade {
	if a > b {
		return a
	}
	return b
}

// Estimate is a measured or predicted number with all that a reader needs to weigh it.
// Low and High bound a 95 % interval; they equal Value where the number is a plain count or sum.
type Estimate struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"` // independent observations behind it
	Grade  Grade   `json:"grade"`
	Source string  `json:"source"` // who measured it, in words: "hook clock", "device events", "emulated counters"
}
