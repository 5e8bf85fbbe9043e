package child

import (
	"context"
	"errors"
	"fmt"
	"io"

	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// supervise starts children one after the other until ctx ends. It keeps its thread: the kernel sends a child's
// parent-death signal when the thread that forked it ends, not the process (prctl(2), PR_SET_PDEATHSIG).
func (c *Child) supervise(ctx context.Context) {
	runtime.LockOSThread()
	defer close(c.done)
	pause := c.config.Backoff
	for {
		begin := c.config.Now()
		frames, why := c.runOnce(ctx)
		c.setState(func(s *State) { s.PID, s.Why = 0, why })
		end := c.config.Now()
		if ctx.Err() != nil {
			if frames == 0 { // it ended because it was told to, and until then it was waiting for somebody
				why = fmt.Sprintf("the run ended before any source of GPU counters had answered, %.1f s after they were asked", float64(end-begin)/1e9)
				c.send(ctx, event{death: &death{begin, end, 0, why}})
			}
			return
		}
		c.send(ctx, event{death: &death{begin, end, frames, why}})
		if end-begin >= uint64(c.config.MaxBackoff) {
			pause = c.config.Backoff
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, c.config.MaxBackoff)
		c.setState(func(s *State) { s.Restarts++ })
	}
}

// runOnce runs one child to its end and says why it ended.
func (c *Child) runOnce(ctx context.Context) (frames uint32, why string) {
	cmd := c.config.Command()
	stderr := &tail{}
	cmd.Stderr = stderr
	cmd.WaitDelay = c.config.Grace
	// A group of its own: the agent ends it, not the terminal's Ctrl-C.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err.Error()
	}
	stdout, output, err := os.Pipe()
	if err != nil {
		return 0, err.Error()
	}
	defer stdout.Close()
	cmd.Stdout = output
	err = cmd.Start()
	output.Close()
	if err != nil {
		return 0, fmt.Sprintf("%s cannot be started: %v", reader, err)
	}
	c.setState(func(s *State) { s.PID = cmd.Process.Pid })
	c.send(ctx, event{})
	defer context.AfterFunc(ctx, func() { c.endGently(cmd, stdin) })()
	frames, silent, err := c.read(ctx, cmd, stdout)
	cmd.Process.Kill() // it has closed its output, is silent, or writes garbage
	return frames, explain(err, silent, cmd.Wait(), stderr.last())
}

// send waits until Poll makes room. Once the child is to end, it waits no longer than Stop may take.
func (c *Child) send(ctx context.Context, e event) {
	select {
	case c.events <- e:
		return
	case <-ctx.Done():
	}
	select {
	case c.events <- e:
	case <-time.After(c.config.Grace):
	}
}

// endGently closes the child's input and kills it after the grace time.
func (c *Child) endGently(cmd *exec.Cmd, stdin io.Closer) {
	stdin.Close()
	time.AfterFunc(c.config.Grace, func() { cmd.Process.Kill() })
}

// read passes on the child's frames until its output ends. While it waits for one, and only then, a watchdog runs: a child
// held up because nobody polls is not silent.
func (c *Child) read(ctx context.Context, cmd *exec.Cmd, stdout io.Reader) (frames uint32, silent bool, err error) {
	var barked atomic.Bool
	watchdog := time.AfterFunc(c.config.Silence, func() {
		barked.Store(true)
		cmd.Process.Kill()
	})
	defer watchdog.Stop()
	pipe := recording.NewPipeReader(stdout)
	for {
		watchdog.Reset(c.config.Silence)
		frame, err := pipe.Next()
		watchdog.Stop()
		if err != nil {
			return frames, barked.Load(), err
		}
		frames++
		c.send(ctx, event{frame: &frame})
	}
}

// reader is what a child is to people, who read why counters are missing.
const reader = "the process that reads them"

// explain says in one line why a child ended.
func explain(pipe error, silent bool, exit error, lastWords string) string {
	why := reader + " ended by itself"
	if exit != nil {
		why = reader + " ended: " + exit.Error()
	}
	garbled := pipe != nil && !errors.Is(pipe, io.EOF)
	switch {
	case silent:
		why = reader + " had fallen silent, and was killed"
	case garbled:
		why = reader + " was killed: " + pipe.Error()
	}
	var status *exec.ExitError
	if said, ok := strings.CutPrefix(lastWords, "error: "); ok && !silent && !garbled && errors.As(exit, &status) && status.Exited() {
		return said // it knew what was wrong, and ended for it
	}
	if lastWords != "" {
		why += ": " + lastWords
	}
	return why
}

// tail keeps the end of what a child says on its standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 2048

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b[max(0, len(b)-tailBytes):]...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

// last returns the last line that says something.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := ""
	for line := range strings.Lines(strings.ToValidUTF8(string(t.text), "?")) {
		if line = strings.TrimSpace(line); line != "" {
			last = line
		}
	}
	return last
}
