package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// TestMain plays the child when this test binary is re-executed.
func TestMain(m *testing.M) {
	mode := os.Getenv("DATAWAIT_TEST_CHILD")
	if mode == "" {
		os.Exit(m.Run())
	}
	play(mode)
}

func play(mode string) {
	ctx, cancel := UntilEOF(context.Background(), os.Stdin)
	defer cancel()
	switch mode {
	case "crash":
		fmt.Fprintln(os.Stderr, "symbol lookup error: undefined symbol: dcgmRunDiagnostic")
		os.Exit(127)
	case "refused":
		fmt.Fprintln(os.Stderr, "error: nobody listens")
		os.Exit(1)
	case "garbage":
		os.Stdout.WriteString("Warning: library loaded twice, going on\n")
	case "silent", "stubborn":
		ctx = context.Background()
	case "parent":
		parent()
	default:
		s := &endless{}
		if err := Serve(ctx, os.Stdout, s, ServeOptions{Poll: time.Millisecond, Declaration: recording.Declaration{Producer: recording.ProducerAgent, PID: os.Getpid()}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	<-ctx.Done()
}

// endless is a source with one window per sample.
type endless struct{ script }

func (*endless) Sample(context.Context, uint64) (gpu.Batch, error) {
	return gpu.Batch{Windows: []recording.GPU{window(0, 0.5)}}, nil
}

// patient is longer than any child is silent by itself.
const patient = 20 * time.Second

// start runs children in this mode, with times short enough for a test.
func start(t *testing.T, mode string, silence time.Duration) (*Child, *recording.Memory) {
	t.Helper()
	c := Start(context.Background(), Config{Command: command(mode), Declaration: recording.Declaration{Producer: recording.ProducerAgent, PID: os.Getpid()},
		Silence: silence, Backoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond, Grace: 5 * time.Second})
	t.Cleanup(c.Stop)
	return c, recording.NewMemory(recording.Manifest{})
}

func command(mode string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "DATAWAIT_TEST_CHILD="+mode)
		return cmd
	}
}

// pollUntil polls until the condition holds.
func pollUntil(t *testing.T, c *Child, m *recording.Memory, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if err := c.Poll(m); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen; %+v", what, c.State())
		}
	}
}

// supervision returns the deaths told so far, and what was last told of the child.
func supervision(t *testing.T, m *recording.Memory) (deaths []recording.Source, why []string) {
	t.Helper()
	for _, s := range m.Streams() {
		if s.Declaration.PID != os.Getpid() {
			continue
		}
		for _, n := range s.Notes.DeviceNames {
			why = append(why, n.Why)
		}
		m.Scan(func(id recording.StreamID, records []recording.Record) error {
			for i := range records {
				if id == s.ID {
					deaths = append(deaths, records[i].Source())
				}
			}
			return nil
		})
	}
	return deaths, why
}

func TestAChildDeliversAndEndsGently(t *testing.T) {
	c, m := start(t, "good", patient)
	pollUntil(t, c, m, "data", func() bool { windows, _ := recordsOf(t, m); return len(windows) >= 3 })
	if s := c.State(); s.PID == 0 || s.Restarts != 0 || s.Why != "" {
		t.Errorf("state %+v", s)
	}
	c.Stop()
	if err := c.Poll(m); err != nil {
		t.Fatal(err)
	}
	if s := c.State(); s.PID != 0 || s.Why != "the process that reads them ended by itself" {
		t.Errorf("state %+v", s)
	}
	if deaths, _ := supervision(t, m); len(deaths) != 0 || !c.Damage().Clean() {
		t.Errorf("deaths %+v, damage %v", deaths, c.Damage())
	}
}

func TestADeathIsAHealthRecord(t *testing.T) {
	for mode, want := range map[string]string{
		"crash":   "the process that reads them ended: exit status 127: symbol lookup error: undefined symbol: dcgmRunDiagnostic",
		"refused": "nobody listens",
		"garbage": `the process that reads them was killed: reading pipe: it starts with "Warning:": not a segment`,
		"silent":  "the process that reads them had fallen silent, and was killed",
	} {
		silence := patient
		if mode == "silent" {
			silence = 50 * time.Millisecond
		}
		c, m := start(t, mode, silence)
		pollUntil(t, c, m, "two deaths of "+mode, func() bool { deaths, _ := supervision(t, m); return len(deaths) >= 2 })
		deaths, why := supervision(t, m)
		if d := deaths[0]; d.Flags != 0 || d.Errors != 1 || d.End < d.Begin || why[0] != want {
			t.Errorf("%s: %+v, %q", mode, d, why)
		}
		if c.State().Restarts == 0 {
			t.Errorf("%s: not restarted", mode)
		}
		c.Stop()
	}
}

func TestAKilledChildComesBack(t *testing.T) {
	c, m := start(t, "good", patient)
	windows := func() int { w, _ := recordsOf(t, m); return len(w) }
	pollUntil(t, c, m, "data", func() bool { return windows() > 0 })
	syscall.Kill(c.State().PID, syscall.SIGKILL)
	pollUntil(t, c, m, "the death", func() bool { deaths, _ := supervision(t, m); return len(deaths) == 1 })
	before := windows()
	pollUntil(t, c, m, "new data", func() bool { return windows() > before })
	_, why := supervision(t, m)
	same(t, why, "the process that reads them ended: signal: killed", "")
	if n := len(m.Streams()); n != 3 { // two children and the supervision
		t.Errorf("%d streams", n)
	}
}

func TestAChildThatCannotBeStarted(t *testing.T) {
	c := Start(context.Background(), Config{Command: func() *exec.Cmd { return exec.Command("/nonexistent/datawait") }, Backoff: time.Millisecond})
	defer c.Stop()
	m := recording.NewMemory(recording.Manifest{})
	pollUntil(t, c, m, "the report", func() bool { return len(m.Streams()) > 0 })
	if why := m.Streams()[0].Notes.DeviceNames[0].Why; !strings.HasPrefix(why, "the process that reads them cannot be started: ") {
		t.Errorf("why %q", why)
	}
}

func TestAChildHeldUpIsNotSilent(t *testing.T) {
	const silence = 150 * time.Millisecond
	c, m := start(t, "good", silence)
	for deadline := time.Now().Add(20 * time.Second); len(c.events) < heldEvents; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d events held, want %d", len(c.events), heldEvents)
		}
	}
	before := c.State()
	time.Sleep(2 * silence) // nobody polls; the child waits for room
	if after := c.State(); after != before {
		t.Errorf("a child held up by its reader was taken for a silent one: %+v, before %+v", after, before)
	}
	c.Stop()
	if err := c.Poll(m); err != nil {
		t.Fatal(err)
	}
}

func TestStopKillsAChildThatDoesNotEnd(t *testing.T) {
	c := Start(context.Background(), Config{Command: command("stubborn"), Silence: time.Minute, Grace: 50 * time.Millisecond})
	for c.State().PID == 0 {
		time.Sleep(time.Millisecond)
	}
	c.Stop()
	if s := c.State(); s.PID != 0 {
		t.Errorf("state %+v", s)
	}
}

// A driver that hangs while it is asked for the first time: the run may be over before it is taken for dead.
func TestAChildThatHadSaidNothingByTheEndIsTold(t *testing.T) {
	c := Start(context.Background(), Config{Command: command("stubborn"), Silence: time.Minute, Grace: 50 * time.Millisecond,
		Declaration: recording.Declaration{Producer: recording.ProducerAgent, PID: os.Getpid()}})
	for c.State().PID == 0 {
		time.Sleep(time.Millisecond)
	}
	c.Stop()
	m := recording.NewMemory(recording.Manifest{})
	if err := c.Poll(m); err != nil {
		t.Fatal(err)
	}
	deaths, why := supervision(t, m)
	if len(deaths) != 1 || len(why) != 1 || !strings.HasPrefix(why[0], "the run ended before any source of GPU counters had answered") {
		t.Errorf("deaths %+v, why %q", deaths, why)
	}
}

func TestABrokenSinkEndsThePolling(t *testing.T) {
	c, _ := start(t, "good", patient)
	full := errors.New("disk full")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if err := c.Poll(failing{full}); err != nil {
			if !errors.Is(err, full) || c.Poll(failing{}) == nil {
				t.Errorf("got %v", err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no error")
		}
	}
}

type failing struct{ err error }

func (f failing) Declare(recording.Declaration) (recording.StreamID, error) { return 1, f.err }
func (f failing) Records(recording.StreamID, []recording.Record) error      { return f.err }
func (f failing) Note(recording.StreamID, json.RawMessage) error            { return f.err }

// parent is a process that starts a child, says its pid and is killed: the child must not survive it.
func parent() {
	c := Start(context.Background(), Config{Command: command("stubborn"), Silence: time.Minute})
	for c.State().PID == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(c.State().PID)
	os.Stdout.Close()
	time.Sleep(time.Minute)
}

func TestAChildEndsWithItsParent(t *testing.T) {
	cmd := command("parent")()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil || pid == 0 {
		t.Fatal(pid, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); runs(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the child survived its parent")
		}
	}
}

// runs reports whether the process is there and no zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestTheEndOfAnErrorIsKept(t *testing.T) {
	var w tail
	w.Write([]byte(strings.Repeat("x", 5000) + "\n"))
	w.Write([]byte("first\nlast words \xff\n\n"))
	if got := w.last(); got != "last words ?" {
		t.Errorf("got %q", got)
	}
	if len(w.text) > tailBytes {
		t.Errorf("%d bytes kept", len(w.text))
	}
}
