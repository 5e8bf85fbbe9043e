package doctor

import (
	"context"
	"errors"

	"github.com/datawait/datawait/cmd/datawait/internal/interpreter"
)

// python is the interpreter of the rehearsal.
type python struct {
	interpreter.Python
	why string // why there is none
}

// String is the interpreter as a sentence has it.
func (p python) String() string {
	if p.Path == "" {
		return "no Python at all"
	}
	return p.Python.String()
}

// candidates are looked for in this order where none is named.
var candidates = []string{"python3", "/usr/bin/python3", "python"}

// choosePython takes the named interpreter, or the first that has PyTorch, or the first that runs.
func choosePython(ctx context.Context, named string) (chosen python) {
	paths := candidates
	if named != "" {
		paths = []string{named}
	}
	var errs []error
	for _, path := range paths {
		p, err := interpreter.Ask(ctx, path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case p.Torch != "":
			return python{Python: p}
		case chosen.Path == "":
			chosen.Python = p
		}
	}
	if chosen.Path == "" {
		chosen.why = "no Python runs here: " + errors.Join(errs...).Error()
	}
	return chosen
}
