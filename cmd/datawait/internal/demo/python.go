package demo

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// pythonKind is what the chosen Python can do.
type pythonKind struct {
	version string
	torch   string // "" without PyTorch, or when it is not wanted
	pillow  bool
}

const probe = `
import importlib.util, platform
find = importlib.util.find_spec
version = lambda name: __import__("importlib.metadata").metadata.version(name) if find(name) else ""
print(platform.python_version(), version("torch") or "-", "pillow" if find("PIL") else "-")
`

// inspect asks a Python what it has, without importing anything heavy.
func inspect(ctx context.Context, python string, torch bool) (pythonKind, error) {
	output, err := exec.CommandContext(ctx, python, "-c", probe).CombinedOutput()
	if err != nil {
		return pythonKind{}, fmt.Errorf("asking %s for its version: %w\n%s", python, err, output)
	}
	words := strings.Fields(string(output))
	if len(words) < 3 {
		return pythonKind{}, fmt.Errorf("asking %s for its version: it answered %q", python, output)
	}
	kind := pythonKind{version: words[0], pillow: words[2] == "pillow"}
	if torch && words[1] != "-" {
		kind.torch = words[1]
	}
	return kind, nil
}

// String says which loader and decoder the runs use.
func (k pythonKind) String() string {
	loader, decoder := "the example's own loader (no PyTorch)", "PNG by the standard library"
	if k.torch != "" {
		loader = "DataLoader of PyTorch " + k.torch
	}
	if k.pillow {
		decoder = "JPEG by Pillow"
	}
	return fmt.Sprintf("Python %s, %s, %s, emulated A100", k.version, loader, decoder)
}

func (k pythonKind) photoSuffix() string {
	if k.pillow {
		return "jpg"
	}
	return "png"
}

func (k pythonKind) env() []string {
	if k.torch == "" {
		return []string{"RETAIL_TORCH=off"}
	}
	return nil
}
