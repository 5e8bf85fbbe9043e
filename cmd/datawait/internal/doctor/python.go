package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// python is an interpreter, and what it has.
type python struct {
	path    string // "" if there is none
	version string
	torch   string // its version, "" without
	cuda    string // that PyTorch was built for, "" for none
	why     string // why there is none
}

// String is the interpreter as a sentence has it.
func (p python) String() string {
	if p.path == "" {
		return "no Python at all"
	}
	s := p.path + " (Python " + p.version
	if p.torch != "" {
		s += ", PyTorch " + p.torch
	}
	return s + ")"
}

// candidates are looked for in this order where none is named.
var candidates = []string{"python3", "/usr/bin/python3", "python"}

// choosePython takes the named interpreter, or the first that has PyTorch, or the first that runs.
func choosePython(ctx context.Context, named string) (chosen python) {
	paths := candidates
	if named != "" {
		paths = []string{named}
	}
	for _, path := range paths {
		p := ask(ctx, path)
		if p.path != "" && p.torch != "" {
			return p
		}
		if chosen.path == "" {
			chosen = p
		}
	}
	return chosen
}

// question imports nothing heavy: PyTorch's version is in its metadata, and in a file of its own.
const question = `
import importlib.util, platform
spec = importlib.util.find_spec("torch")
torch = cuda = "-"
if spec and spec.submodule_search_locations:
    names = {}
    try:
        exec(open(spec.submodule_search_locations[0] + "/version.py").read(), names)
    except Exception:
        pass
    torch, cuda = names.get("__version__", "unknown"), names.get("cuda") or "-"
print(platform.python_version(), torch, cuda)
`

func ask(ctx context.Context, path string) python {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	found, err := exec.LookPath(path)
	if err != nil {
		return python{why: fmt.Sprintf("no Python runs here: %s: %v", path, err)}
	}
	output, err := exec.CommandContext(ctx, found, "-c", question).Output()
	words := strings.Fields(string(output))
	if err != nil || len(words) != 3 {
		return python{why: fmt.Sprintf("%s does not say its version: %v", found, err)}
	}
	known := func(word string) string { return strings.Trim(word, "-") }
	return python{path: found, version: words[0], torch: known(words[1]), cuda: known(words[2])}
}
