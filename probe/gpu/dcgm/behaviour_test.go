//go:build linux && cgo

package dcgm

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// behaviour is one thing that DCGM does, and what becomes of it for the person who reads the report. It is played by the stand-in
// library to the real binding.
type behaviour struct {
	row      string // of testdata/behaviour.txt, where it says what DCGM does
	sentence string
	scenario string
	plan     plan
	reads    func(t *testing.T, o standin.Outcome)
}

// behaviours of all subjects; each has a file.
var behaviours = [][]behaviour{connecting, breaking, refusing, valueless, timing}

// apart are the rows that need more than a scenario, and the tests that they have.
var apart = map[string]func(*testing.T){
	"no-library":         TestWithoutDCGMsLibraryTheReasonIsSaidAndNothingIsCalled,
	"missing-symbol":     TestALibraryWithoutAFunctionIsRefusedBeforeItEndsTheProcess,
	"socket-permission":  TestASocketThatMayNotBeUsedIsNotOneThatIsMissing,
	"live-profiling":     TestTheEngineDiesOfALiveReadOfAProfilingField,
	"engine-started":     TestCallsThatHarmOrMisleadAreNotMade,
	"wrapper-text":       TestCallsThatHarmOrMisleadAreNotMade,
	"pcie-of-gen-5":      TestCallsThatHarmOrMisleadAreNotMade,
	"unknown-gpu-empty":  TestCallsThatHarmOrMisleadAreNotMade,
	"blanks-of-numbers":  TestEveryBlankIsNothingAndSaysWhy,
	"blanks-of-strings":  TestEveryBlankIsNothingAndSaysWhy,
	"status-of-a-sample": TestEveryStatusOfASampleIsNothingAndSaysWhy,
}

func TestWhatAPersonReads(t *testing.T) {
	for _, subject := range behaviours {
		for _, b := range subject {
			t.Run(strings.ReplaceAll(b.sentence, " ", "_"), func(t *testing.T) {
				t.Parallel()
				if b.plan.For == 0 {
					b.plan.For = 1500 * time.Millisecond
				}
				if b.plan.Every == 0 {
					b.plan.Every = 300 * time.Millisecond
				}
				o := sampled(t, b.scenario, b.plan)
				b.reads(t, o)
				if t.Failed() {
					t.Logf("%+v", o)
				}
			})
		}
	}
}

// TestEveryRowOfTheBehaviourListHasATest compares the list with what is tested, both ways.
func TestEveryRowOfTheBehaviourListHasATest(t *testing.T) {
	tested := map[string]bool{}
	for row, test := range apart {
		tested[row] = test != nil
	}
	for _, subject := range behaviours {
		for _, b := range subject {
			tested[b.row] = true
		}
	}
	file, err := os.Open("testdata/behaviour.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	listed := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		row, what, _ := strings.Cut(line, "  ")
		if strings.TrimSpace(what) == "" || listed[row] {
			t.Errorf("the row %q says nothing, or is there twice", row)
		}
		listed[row] = true
		if !tested[row] {
			t.Errorf("no test of %s: %s", row, what)
		}
	}
	if len(listed) < 40 {
		t.Errorf("only %d rows are listed", len(listed))
	}
	for row := range tested {
		if !listed[row] {
			t.Errorf("a test of %s, which is not listed", row)
		}
	}
}

// one is an A100 at work.
var one = standin.A100(0, "sm=0.5 tensor=0.25 resident=1") + standin.Groups

// working fails unless the GPU has so many windows, all of them of its constant work and none told twice.
func working(t *testing.T, o standin.Outcome, ref uint16, least int) {
	t.Helper()
	windows := o.Windows(ref)
	if len(windows) < least {
		t.Errorf("%d windows of GPU %d, fewer than %d", len(windows), ref, least)
	}
	for i, w := range windows {
		if w.Values["sm"] != 0.5 || w.Flags != 0 {
			t.Errorf("window %+v", w)
		}
		if i > 0 && w.Begin < windows[i-1].End {
			t.Errorf("told twice: %+v and %+v", windows[i-1], w)
		}
	}
}

// says fails unless the text has all of these words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// missing is why the GPU of this number is not counted.
func missing(o standin.Outcome, ref int) string {
	if ref >= len(o.Devices) {
		return ""
	}
	return o.Devices[ref].Missing
}

// why is the last reason that was given for having nothing of a GPU.
func why(o standin.Outcome, ref uint16) (last string) {
	for _, p := range o.Polls {
		for _, f := range p.Failures {
			if f.Ref == ref {
				last = f.Why
			}
		}
	}
	return last
}

// troubles are the errors of polls.
func troubles(o standin.Outcome) string {
	var all []string
	for _, p := range o.Polls {
		if p.Error != "" {
			all = append(all, p.Error)
		}
	}
	return strings.Join(all, "\n")
}

// quiet fails if a poll failed or a GPU had nothing, after so many polls.
func quiet(t *testing.T, o standin.Outcome, after int) {
	t.Helper()
	for i, p := range o.Polls {
		if i >= after && (p.Error != "" || len(p.Failures) > 0) {
			t.Errorf("poll %d: %q, %+v", i, p.Error, p.Failures)
		}
	}
}
