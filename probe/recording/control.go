// The control page: how the agent tells the ranks which blocks to run (SPEC §5).

package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Layout of the control page.
const (
	ControlName  = "control"
	ControlMagic = "DWCTRL1\n"
	ControlBytes = 4096
	MaxBlocks    = 126
	// PlanAhead is how many steps past the furthest rank a block must begin, so that every rank reads it in time.
	PlanAhead = 32

	controlHeld    = 1 // flag
	controlPlanAt  = 64
	controlPlanned = 32 // bytes of one planned block
)

// ControlMode says what the ranks may do.
type ControlMode uint32

const (
	ControlObserve ControlMode = 0
	ControlTest    ControlMode = 1 // run the plan
	ControlPark    ControlMode = 2 // park at the next step boundary
)

// Control is the content of the control page.
type Control struct {
	Mode     ControlMode
	AgentPID uint32
	Cap      uint64 // bytes a rank may cache
	ParkAt   uint64 // step to park at, or later; Unknown64 = not planned
	Held     bool   // the agent holds an exclusive flock on the page while it lives; set by the writer
	Plan     []PlannedBlock
}

// PlannedBlock is one block of the plan, in step numbers as the ring's Step counts them.
type PlannedBlock struct {
	Block uint32 // from 1, ascending
	Leg   Leg
	First uint64 // first step
	End   uint64 // exclusive
	Flags uint32 // PlanSolo
	Trial Trial  // of LegTrial
}

// PlanSolo asks for solo builds after the block.
const PlanSolo = 1

// ErrControlBusy means that the page was being written; read it again at the next step.
var ErrControlBusy = errors.New("control page is being written")

// ControlWriter writes the control page of one spool folder.
type ControlWriter struct {
	f          *os.File
	generation uint32
	held       bool
}

// CreateControl puts a page that says "observe" into the spool folder and locks it, so that ranks see whether their agent
// lives even where they cannot see its pid. A page that an agent which died left behind is taken over: ranks have it
// mapped. A new one appears whole, written under another name first.
func CreateControl(spool string, agentPID uint32) (*ControlWriter, error) {
	first := Control{AgentPID: agentPID, ParkAt: Unknown64}
	if w := takeOverControl(filepath.Join(spool, ControlName)); w != nil {
		if err := w.Write(first); err == nil {
			return w, nil
		}
		w.Close()
	}
	f, err := os.CreateTemp(spool, ".control-*")
	if err != nil {
		return nil, fmt.Errorf("creating control page: %w", err)
	}
	w := &ControlWriter{f: f}
	w.hold()
	err = w.Write(first)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(spool, ControlName))
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("creating control page: %w", err)
	}
	return w, nil
}

// takeOverControl opens the page of an agent that is gone, nil if there is none.
func takeOverControl(path string) *ControlWriter {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	w := &ControlWriter{f: f}
	page := make([]byte, ControlBytes)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && ownedBySpool(path, info) == nil {
		if _, err := f.ReadAt(page, 0); err == nil && string(page[:8]) == ControlMagic && w.hold() {
			w.generation = binary.LittleEndian.Uint32(page[8:]) &^ 1
			return w
		}
	}
	f.Close()
	return nil
}

// hold locks the page for as long as this process lives.
func (w *ControlWriter) hold() bool {
	w.held = syscall.Flock(int(w.f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	return w.held
}

// Write replaces the content. The generation is odd while it does, and the three writes reach readers in that order.
func (w *ControlWriter) Write(c Control) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("writing control page: %w", err)
	}
	c.Held = w.held
	page := c.encode(w.generation + 1)
	steps := []struct {
		b  []byte
		at int64
	}{
		{page[8:12], 8}, // odd: readers stand back
		{page, 0},
		{binary.LittleEndian.AppendUint32(nil, w.generation+2), 8},
	}
	for _, s := range steps {
		if _, err := w.f.WriteAt(s.b, s.at); err != nil {
			return fmt.Errorf("writing control page: %w", err)
		}
	}
	w.generation += 2
	return nil
}

// Close closes the file; the page stays for the ranks.
func (w *ControlWriter) Close() error { return w.f.Close() }

// check refuses a plan that ranks could read differently.
func (c Control) check() error {
	if len(c.Plan) > MaxBlocks {
		return fmt.Errorf("%d blocks, at most %d fit", len(c.Plan), MaxBlocks)
	}
	for i, b := range c.Plan {
		if b.Block == 0 || b.First >= b.End {
			return fmt.Errorf("block %d covers steps %d to %d", b.Block, b.First, b.End)
		}
		if i > 0 && (b.Block <= c.Plan[i-1].Block || b.First < c.Plan[i-1].End) {
			return fmt.Errorf("block %d does not come after block %d", b.Block, c.Plan[i-1].Block)
		}
	}
	return nil
}

func (c Control) encode(generation uint32) []byte {
	b := make([]byte, ControlBytes)
	copy(b, ControlMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], generation)
	le.PutUint32(b[12:], uint32(c.Mode))
	le.PutUint32(b[16:], uint32(len(c.Plan)))
	le.PutUint32(b[20:], c.AgentPID)
	le.PutUint64(b[24:], c.Cap)
	le.PutUint64(b[32:], c.ParkAt)
	if c.Held {
		le.PutUint32(b[40:], controlHeld)
	}
	for i, p := range c.Plan {
		e := b[controlPlanAt+i*controlPlanned:]
		le.PutUint32(e[0:], p.Block)
		le.PutUint32(e[4:], uint32(p.Leg))
		le.PutUint64(e[8:], p.First)
		le.PutUint64(e[16:], p.End)
		le.PutUint32(e[24:], p.Flags)
		le.PutUint32(e[28:], p.Trial.word())
	}
	return b
}

// ParseControl decodes a page.
func ParseControl(b []byte) (Control, error) {
	if len(b) < ControlBytes || string(b[:8]) != ControlMagic {
		return Control{}, errors.New("reading control page: not a control page")
	}
	le := binary.LittleEndian
	if le.Uint32(b[8:])%2 == 1 {
		return Control{}, ErrControlBusy
	}
	n := le.Uint32(b[16:])
	if n > MaxBlocks {
		return Control{}, fmt.Errorf("reading control page: %d blocks, at most %d fit", n, MaxBlocks)
	}
	c := Control{Mode: ControlMode(le.Uint32(b[12:])), AgentPID: le.Uint32(b[20:]), Cap: le.Uint64(b[24:]), ParkAt: le.Uint64(b[32:]),
		Held: le.Uint32(b[40:])&controlHeld != 0}
	for i := range int(n) {
		e := b[controlPlanAt+i*controlPlanned:]
		c.Plan = append(c.Plan, PlannedBlock{
			Block: le.Uint32(e[0:]), Leg: Leg(min(le.Uint32(e[4:]), Unknown16)),
			First: le.Uint64(e[8:]), End: le.Uint64(e[16:]), Flags: le.Uint32(e[24:]),
			Trial: trialOf(le.Uint32(e[28:])),
		})
	}
	if err := c.check(); err != nil {
		return Control{}, fmt.Errorf("reading control page: %w", err)
	}
	return c, nil
}

// ReadControl reads the page of a spool folder; ErrControlBusy asks to try again later.
func ReadControl(spool string) (Control, error) {
	f, err := OpenRegular(filepath.Join(spool, ControlName))
	if err != nil {
		return Control{}, fmt.Errorf("reading control page: %w", err)
	}
	defer f.Close()
	page := make([]byte, ControlBytes)
	if _, err := f.ReadAt(page, 0); err != nil {
		return Control{}, fmt.Errorf("reading control page: %w", err)
	}
	var after [4]byte
	if _, err := f.ReadAt(after[:], 8); err != nil {
		return Control{}, fmt.Errorf("reading control page: %w", err)
	}
	if string(after[:]) != string(page[8:12]) {
		return Control{}, ErrControlBusy
	}
	return ParseControl(page)
}
