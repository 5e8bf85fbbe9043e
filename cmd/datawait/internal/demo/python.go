package demo

import (
	"context"
	"fmt"

	"github.com/datawait/datawait/cmd/datawait/internal/interpreter"
)

// pythonKind is what the runs use of the chosen Python.
type pythonKind struct {
	interpreter.Python
}

// inspect asks a Python what it has. Without torch, PyTorch is not used where it has it.
func inspect(ctx context.Context, path string, torch bool) (pythonKind, error) {
	p, err := interpreter.Ask(ctx, path)
	if !torch {
		p.Torch = ""
	}
	return pythonKind{p}, err
}

// String says which loader and decoder the runs use.
func (k pythonKind) String() string {
	loader, decoder := "the example's own loader (no PyTorch)", "PNG by the standard library"
	if k.Torch != "" {
		loader = "DataLoader of PyTorch " + k.Torch
	}
	if k.Pillow {
		decoder = "JPEG by Pillow"
	}
	return fmt.Sprintf("Python %s, %s, %s, emulated A100", k.Version, loader, decoder)
}

func (k pythonKind) photoSuffix() string {
	if k.Pillow {
		return "jpg"
	}
	return "png"
}

func (k pythonKind) env() []string {
	if k.Torch == "" {
		return []string{"RETAIL_TORCH=off"}
	}
	return nil
}
