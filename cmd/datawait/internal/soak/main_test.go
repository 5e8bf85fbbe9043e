package soak

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/datawait/datawait/cmd/datawait/internal/cli"
)

// TestMain makes this binary the command datawait, too.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"datawait": func() {
		os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}})
}

// python is the first Python that has PyTorch, which a tenth of the runs needs.
var python = sync.OnceValue(func() string {
	for _, p := range []string{os.Getenv("DATAWAIT_PYTHON"), "python3", "/usr/bin/python3"} {
		if p != "" && exec.Command(p, "-c", "import torch").Run() == nil {
			return p
		}
	}
	panic("no Python with PyTorch: .ci/setup installs one")
})
