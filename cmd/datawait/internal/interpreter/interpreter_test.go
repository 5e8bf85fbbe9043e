package interpreter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder in the way of a package's is enough: nothing is imported.
func TestAPythonSaysWhatItHas(t *testing.T) {
	site := t.TempDir()
	for name, text := range map[string]string{
		"torch/__init__.py": "raise SystemExit('PyTorch was imported')", "torch/version.py": "__version__ = '9.1.0+x'\ncuda = '13.0'", "PIL/__init__.py": "raise SystemExit",
	} {
		path := filepath.Join(site, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PYTHONPATH", site)
	p, err := Ask(t.Context(), "python3")
	if err != nil || p.Torch != "9.1.0+x" || p.CUDA != "13.0" || !p.Pillow || !strings.HasPrefix(p.Version, "3.") || !strings.HasSuffix(p.String(), ", PyTorch 9.1.0+x)") {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestWhatIsNoPythonIsAnErrorWithWhatItSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho not me\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not me") {
		t.Errorf("%v", err)
	}
	if _, err := Ask(t.Context(), "/no/such/python3"); err == nil {
		t.Error("there is none")
	}
}
