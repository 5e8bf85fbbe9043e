package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"sync"
	"time"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// Config of the agent's side.
type Config struct {
	Command     func() *exec.Cmd      // a new command for every start; its input, output and attributes are set here
	Declaration recording.Declaration // of the stream that tells of the child's deaths
	Silence     time.Duration         // a child that writes nothing for so long is killed; 0 = 15 s
	Backoff     time.Duration         // before the first restart, doubled for every further one; 0 = 1 s
	MaxBackoff  time.Duration         // 0 = 1 min. A child that ran so long starts with Backoff again
	Grace       time.Duration         // between closing the child's input and killing it; 0 = 2 s
	Now         func() uint64         // CLOCK_MONOTONIC, ns; nil = the clock
}

// heldEvents bounds what a child may send ahead of Poll; then it waits. A frame has at most 32 KiB.
const heldEvents = 128

// Child is a source in another process, kept running. Poll belongs to one goroutine.
type Child struct {
	config Config
	stop   context.CancelFunc
	events chan event
	done   chan struct{} // closed when no process runs any more
	rest   []event       // taken from events by Stop

	mu    sync.Mutex
	state State

	forward *recording.PipeForward // of the running child
	damage  recording.Damage       // of those before
	health  *recording.Appender
	sick    bool // the last thing told of the children is a death
	sinkErr error
}

// State says how the child is doing.
type State struct {
	PID      int    // of the running child, 0 if none runs
	Restarts int    // after the first start
	Why      string // why the last child ended, "" if none did
}

// event is what the supervising goroutine tells Poll.
type event struct {
	frame *recording.PipeFrame
	death *death // nil with a nil frame: a new child was started
}

type death struct {
	begin, end uint64 // ns
	frames     uint32
	why        string
}

// Start starts the child and keeps it running until Stop or the end of ctx. It returns at once: a child that cannot be
// started is told by Poll like one that died.
func Start(ctx context.Context, c Config) *Child {
	c.Silence = cmp.Or(c.Silence, 15*time.Second)
	c.Backoff = cmp.Or(c.Backoff, time.Second)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, time.Minute)
	c.Grace = cmp.Or(c.Grace, 2*time.Second)
	if c.Now == nil {
		c.Now = clock.Mono
	}
	ctx, stop := context.WithCancel(ctx)
	child := &Child{config: c, stop: stop, events: make(chan event, heldEvents), done: make(chan struct{})}
	go child.supervise(ctx)
	return child
}

// State returns how the child is doing now.
func (c *Child) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *Child) setState(change func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
}

// Damage counts what children sent that could not be used.
func (c *Child) Damage() recording.Damage {
	if c.forward == nil {
		return c.damage
	}
	return c.damage.Add(c.forward.Damage)
}

// Poll hands everything that has arrived to the sink, and waits for nothing. The error is the sink's and stays.
func (c *Child) Poll(sink recording.Sink) error {
	for _, e := range c.rest {
		c.take(sink, e)
	}
	c.rest = nil
	for range heldEvents {
		select {
		case e := <-c.events:
			c.take(sink, e)
			continue
		default:
		}
		break
	}
	return c.sinkErr
}

// Stop asks the child to end, kills it if it does not, and waits for it. A last Poll then hands over what it still sent.
func (c *Child) Stop() {
	c.stop()
	for {
		select {
		case e := <-c.events:
			c.rest = append(c.rest, e)
		case <-c.done:
			c.collect()
			return
		}
	}
}

// collect takes what is left when nothing more comes.
func (c *Child) collect() {
	for {
		select {
		case e := <-c.events:
			c.rest = append(c.rest, e)
		default:
			return
		}
	}
}

func (c *Child) take(sink recording.Sink, e event) {
	if c.sinkErr != nil {
		return
	}
	switch {
	case e.frame != nil:
		c.sinkErr = errors.Join(c.tellRecovery(), c.forward.Forward(*e.frame))
	case e.death != nil:
		c.sinkErr = c.tell(sink, *e.death)
	default:
		c.damage = c.Damage()
		c.forward = recording.NewPipeForward(sink)
	}
}

// tell writes a child's death: a SOURCE record without success, and why.
func (c *Child) tell(sink recording.Sink, d death) error {
	if c.health == nil {
		id, err := sink.Declare(c.config.Declaration)
		if err != nil {
			return fmt.Errorf("declaring the stream of the GPU child: %w", err)
		}
		c.health = recording.NewAppender(sink, id)
	}
	c.sick = true
	record := recording.Source{Ref: sourceRef, Begin: d.begin, End: d.end, Samples: d.frames, Errors: 1,
		CPU: float32(math.NaN()), RSS: recording.Unknown64, Lateness: recording.Unknown64}.Encode()
	return errors.Join(c.health.Note(nameChild(d.why)), c.health.Append(record))
}

// tellRecovery says that a child works again.
func (c *Child) tellRecovery() error {
	if !c.sick {
		return nil
	}
	c.sick = false
	return c.health.Note(nameChild(""))
}

func nameChild(why string) recording.DeviceNameNote {
	return recording.DeviceNameNote{Class: recording.ClassSource, Ref: sourceRef, Name: "gpu/child", Why: why}
}
