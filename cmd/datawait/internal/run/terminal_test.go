package run

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wrapperScript, when set, makes this test binary a wrapper that runs the script and prints its status.
const wrapperScript = "RUN_TEST_WRAPPER"

func TestMain(m *testing.M) {
	script := os.Getenv(wrapperScript)
	if script == "" {
		os.Exit(m.Run())
	}
	j, err := Start(Command{Argv: []string{"sh", "-c", script}, Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("status %d\n", j.Exit().Status())
	var answer string // datawait itself can read the terminal again
	fmt.Scanln(&answer)
	fmt.Println("read", answer)
}

// pty opens a pseudo-terminal (ptmx(4)).
func pty(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, terminal
}

// session is a wrapper at a terminal of its own.
type session struct {
	t      *testing.T
	master *os.File
	seen   string
	text   chan string
	wrap   *exec.Cmd
}

func wrapped(t *testing.T, script string) *session {
	t.Helper()
	master, terminal := pty(t)
	s := &session{t: t, master: master, text: make(chan string, 100), wrap: exec.Command(os.Args[0])}
	s.wrap.Env = append(os.Environ(), wrapperScript+"="+script)
	s.wrap.Stdin, s.wrap.Stdout, s.wrap.Stderr = terminal, terminal, terminal
	s.wrap.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.wrap.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			if err != nil {
				close(s.text)
				return
			}
			s.text <- string(b[:n])
		}
	}()
	t.Cleanup(func() { s.wrap.Process.Kill(); s.wrap.Wait() })
	return s
}

// expect waits until the terminal shows the text.
func (s *session) expect(text string) {
	s.t.Helper()
	deadline := time.After(5 * time.Second)
	for !strings.Contains(s.seen, text) {
		select {
		case more, ok := <-s.text:
			if !ok {
				s.t.Fatalf("the terminal closed without %q: %q", text, s.seen)
			}
			s.seen += more
		case <-deadline:
			s.t.Fatalf("no %q on the terminal: %q", text, s.seen)
		}
	}
	s.seen = s.seen[strings.Index(s.seen, text)+len(text):]
}

func (s *session) keys(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func TestTheCommandReadsTheTerminal(t *testing.T) {
	s := wrapped(t, `read x; echo "got $x"; exit 4`)
	s.keys("hello\n")
	s.expect("got hello")
	s.expect("status 4")
	s.keys("again\n")
	s.expect("read again")
}

func TestCtrlCGoesToTheCommand(t *testing.T) {
	s := wrapped(t, `trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.05; done`)
	s.expect("ready")
	s.keys("\x03")
	s.expect("interrupted")
	s.expect("status 9")
}

// The wrapper leads a session here, so nobody can stop it: after Ctrl-Z both must go on.
func TestCtrlZIsSurvived(t *testing.T) {
	s := wrapped(t, `trap 'echo continued' CONT; echo ready; read x; echo "got $x"`)
	s.expect("ready")
	s.keys("\x1a")
	s.expect("continued")
	s.keys("hello\n")
	s.expect("got")
	s.expect("status 0")
}
