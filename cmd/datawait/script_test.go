package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/datawait/datawait/cmd/datawait/internal/cli"
	"github.com/datawait/datawait/cmd/datawait/internal/promserver"
	"github.com/datawait/datawait/probe/gpu/standin"
)

// tidy removes what tests of this package made for one another.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	defer standin.Remove()
	defer func() { os.RemoveAll(bareDir) }() // "" removes nothing
	return t.M.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(tidy{m}, map[string]func(){"datawait": func() {
		os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}})
}

// TestScripts runs testdata/script: one file per feature or bug, what is said and what is not.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setUp,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"status": status, "prometheus": prometheus},
	})
}

// python is the interpreter scripts run as $PYTHON: the first that has PyTorch. Without one torch.txtar fails, because
// what it tests would not be tested.
var python = sync.OnceValue(func() string {
	for _, p := range []string{os.Getenv("DATAWAIT_PYTHON"), "python3", "/usr/bin/python3"} {
		if p != "" && exec.Command(p, "-c", "import torch").Run() == nil {
			return p
		}
	}
	return "python3"
})

func setUp(e *testscript.Env) error {
	e.Setenv("PYTHON", python())
	e.Setenv("TMPDIR", e.WorkDir)
	return nil
}

// prometheus runs a real one that knows a history (promserver.Expand), and names it in $PROMETHEUS: prometheus history
func prometheus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: prometheus FILE")
	}
	history, err := promserver.Expand(ts.ReadFile(args[0]))
	ts.Check(err)
	server, err := promserver.Start(ts.MkAbs("prometheus"), history)
	ts.Check(err)
	ts.Defer(server.Stop)
	ts.Setenv("PROMETHEUS", server.URL)
}

// status runs a program and compares its exit status: status 3 datawait record -- sh -c 'exit 3'
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status code program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
