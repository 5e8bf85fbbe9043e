package fixes

import (
	"fmt"
	"strings"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/stage"
	"github.com/datawait/datawait/analysis/stat"
)

// seen is what looks at the builders' stacks found of some kinds of work.
type seen struct {
	part      stat.Interval // of the CPU time before collate
	functions string        // that make most of it: "train.py:load, train.py:flip"; "" where none can be named
}

// inside returns what was seen of some kinds of work, if anybody looked.
func (j *job) inside(classes ...stage.Class) (s seen, ok bool) {
	if j.p.Inside == nil {
		return seen{}, false
	}
	part, functions, ok := j.p.Inside.BeforeCollate(classes...)
	return seen{part, strings.Join(functions, ", ")}, ok
}

// assumption says what the looks found, in place of a guess: "decoding takes 61 % (50–70 %) of the CPU time before collate".
func (s seen) assumption(what string) string {
	low, high := phrase.Percent(s.part.Low), phrase.Percent(s.part.High)
	return fmt.Sprintf("%s %s of the CPU time before collate, as looks at the workers' stacks found (95 %% interval: %s to %s)", what, phrase.Percent(s.part.Value), low, high)
}

// here names the functions in a recipe.
func (s seen) here() string {
	if s.functions == "" {
		return ""
	}
	return " (here: " + s.functions + ")"
}

// named is the function that makes most of a kind of work: " (here: train.py:collate)".
func (j *job) named(class stage.Class) string {
	if j.p.Inside == nil {
		return ""
	}
	for _, p := range j.p.Inside.Parts {
		if p.Class == class && len(p.Functions) > 0 {
			return " (here: " + p.Functions[0].Name + ")"
		}
	}
	return ""
}
