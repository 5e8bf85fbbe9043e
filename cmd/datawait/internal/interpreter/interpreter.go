// Package interpreter asks a Python what it is and what it has. Nothing heavy is imported for that.
package interpreter

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"
)

// Python is an interpreter.
type Python struct {
	Path    string
	Version string `json:"python"`
	Torch   string `json:"torch"` // version of PyTorch, "" without
	CUDA    string `json:"cuda"`  // that PyTorch was built for, "" for none
	Pillow  bool   `json:"pillow"`
}

// String is the interpreter as a sentence has it.
func (p Python) String() string {
	s := p.Path + " (Python " + p.Version
	if p.Torch != "" {
		s += ", PyTorch " + p.Torch
	}
	return s + ")"
}

// question reads PyTorch's version from its file of that name: the metadata of a package may lack it, and importing takes seconds.
const question = `
import importlib.util, json, platform
spec = importlib.util.find_spec("torch")
torch = cuda = ""
if spec and spec.submodule_search_locations:
    names = {}
    try:
        exec(open(spec.submodule_search_locations[0] + "/version.py").read(), names)
    except Exception:
        pass
    torch, cuda = names.get("__version__", "of unknown version"), names.get("cuda") or ""
pillow = importlib.util.find_spec("PIL") is not None
print(json.dumps({"python": platform.python_version(), "torch": torch, "cuda": cuda, "pillow": pillow}))
`

// Ask asks the interpreter that a path or a name in PATH leads to.
func Ask(ctx context.Context, path string) (p Python, err error) {
	if p.Path, err = exec.LookPath(path); err != nil {
		return p, err
	}
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	output, err := exec.CommandContext(ctx, p.Path, "-c", question).CombinedOutput()
	if err == nil {
		err = json.Unmarshal(output, &p)
	}
	if err != nil {
		return p, fmt.Errorf("asking %s what it is: %w\n%s", p.Path, err, output)
	}
	return p, nil
}
