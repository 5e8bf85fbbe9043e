package wrap

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/progress"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/report"
)

// reporting is a session whose command has ended and whose recording is complete, and what it says.
func reporting(t *testing.T) (*session, *strings.Builder, string) {
	t.Helper()
	out := t.TempDir()
	w, err := recording.Create(out, recording.Manifest{Host: "here"}, recording.Options{})
	if err == nil {
		err = w.Close(recording.Ending{At: time.Now()})
	}
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	job, err := run.Start(run.Command{Argv: []string{"true"}, Env: os.Environ(), Stdin: null, Stdout: null, Stderr: null})
	if err != nil {
		t.Fatal(err)
	}
	<-job.Done()
	var said strings.Builder
	return &session{ctx: context.Background(), job: job, line: progress.New(&said, false, 80),
		options: Options{Grace: time.Minute, Formats: []report.Format{report.JSON}}.withDefaults()}, &said, out
}

func TestTheReportIsLeftOutAtTheSecondCtrlC(t *testing.T) {
	for _, tt := range []struct {
		before int // Ctrl-C that ended the command
		now    []os.Signal
		made   bool
	}{
		{0, []os.Signal{syscall.SIGINT}, true},
		{0, []os.Signal{syscall.SIGINT, syscall.SIGINT}, false},
		{1, []os.Signal{syscall.SIGINT}, false},
		{0, []os.Signal{syscall.SIGTERM, syscall.SIGUSR1}, true}, // within the grace
	} {
		s, said, out := reporting(t)
		signals := make(chan os.Signal, len(tt.now))
		for _, sig := range tt.now {
			signals <- sig
		}
		_, made := s.reportWithin(out, ended{interrupts: tt.before}, signals)
		if made != tt.made {
			t.Errorf("after %d, %v: made %v", tt.before, tt.now, made)
		}
		if tt.made {
			if _, err := os.Stat(filepath.Join(out, "report.json")); err != nil {
				t.Error(err)
			}
		}
		if first := tt.before == 0 && tt.now[0] == syscall.SIGINT; first != strings.Contains(said.String(), "another Ctrl-C leaves it out") {
			t.Errorf("after %d, %v it says %q", tt.before, tt.now, said)
		}
	}
}

func TestAQuietRunSaysWhatWentWrong(t *testing.T) {
	s, _, out := reporting(t)
	said, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	s.options.Quiet, s.options.Files.Err, s.line = true, said, progress.New(nil, false, 80)
	if _, made := s.reportWithin(filepath.Join(out, "nothing"), ended{}, nil); made {
		t.Fatal("a report of nothing was made")
	}
	if text, _ := os.ReadFile(said.Name()); !strings.Contains(string(text), "making the report: ") {
		t.Errorf("said %q, want why there is no report", text)
	}
}
