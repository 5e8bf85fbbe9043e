// The fixed parts of a ring file (SPEC §4).

package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Layout of a ring file, in bytes and records.
const (
	RingMagic       = "DWRING1\n"
	RingVersion     = 1
	RingHeaderBytes = 65536 // records begin here
	RingNotesAt     = 4096
	RingMaxNotes    = RingHeaderBytes - RingNotesAt
	RingTotalsAt    = 1024
	RingTotalSlots  = 32 // loaders from 31 on share the last one
	TotalsBytes     = 64

	MainCapacity   = 65536 // records, default of a main process
	WorkerCapacity = 16384 // records, default of a worker

	// What a reader believes: a file of 256 MiB, and a head no process reaches in its life.
	maxCapacity = 1 << 22
	maxHead     = 1 << 48

	ringFixed = 144 // bytes of the header that hold fields
)

// RingName returns the file name of the ring of a process; startTicks is field 22 of /proc/pid/stat.
func RingName(pid int, startTicks uint64) string {
	return fmt.Sprintf("ring-%d-%d.dwr", pid, startTicks)
}

// NextRingName returns the name of a further ring of the same process, n from 2.
func NextRingName(pid int, startTicks uint64, n int) string {
	return fmt.Sprintf("ring-%d-%d-%d.dwr", pid, startTicks, n)
}

// ParseRingName is the inverse of both.
func ParseRingName(name string) (pid int, startTicks uint64, ok bool) {
	rest, ring := strings.CutPrefix(name, "ring-")
	rest, dwr := strings.CutSuffix(rest, ".dwr")
	if !ring || !dwr { // a spool holds other files too, and is listed every second
		return 0, 0, false
	}
	number, rest, _ := strings.Cut(rest, "-")
	ticks, further, again := strings.Cut(rest, "-")
	n, isPID := decimal(number, 31)
	startTicks, isTicks := decimal(ticks, 64)
	if again {
		n, isN := decimal(further, 31)
		isTicks = isTicks && isN && n > 1
	}
	return int(n), startTicks, isPID && n > 0 && isTicks
}

// decimal reads a number of so many bits that is written in digits alone, none of them needless.
func decimal(text string, bits int) (n uint64, ok bool) {
	if text == "" || text[0] == '+' || text[0] == '0' && text != "0" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, bits)
	return n, err == nil
}

// RingState says whether the process has closed its ring.
type RingState uint32

const (
	RingOpen   RingState = 1
	RingClosed RingState = 2 // closed by the process at its end
)

// HookState says whether the hook still observes.
type HookState uint32

const (
	HookObserving HookState = 1
	HookDisabled  HookState = 2
)

// StepUnit says what a ring counts as steps.
type StepUnit uint32

const (
	StepFetches   StepUnit = 0 // fetches of the training loader
	StepOptimizer StepUnit = 1 // optimizer steps
)

// ParkState says why a rank waits inside next() to be ended.
type ParkState uint32

const (
	NotParked    ParkState = 0
	ParkedAtEnd  ParkState = 1 // the plan is done
	ParkedBySave ParkState = 2 // by the save-guard
)

// RingHeader is the first page of a ring: its geometry, and a live view of the process.
type RingHeader struct {
	Capacity     uint32 // records, a power of two
	Head         uint64 // records ever written
	NoteBytes    uint64 // used, from RingNotesAt
	NotesDropped uint64 // notes that did not fit
	HookErrors   uint64 // caught inside the hook
	State        RingState
	Hook         HookState
	Monotonic    uint64 // ns, clock pair
	Realtime     uint64 // ns since 1970, clock pair
	Step         uint64 // steps finished
	StepUnit     StepUnit
	Parked       ParkState
	Block        uint64 // highest block of the test finished
	Fetches      uint64 // so far, all loaders
	EpochLength  uint64 // batches of the training loader's current epoch; Unknown64 if not known
	EpochBatch   uint64 // batch index in it
	OwnTime      uint64 // ns the hook itself took in the fetches in which it looked
	OwnLooks     uint64 // how many those are; 0 = not known
}

// Totals are the running sums of one loader. They count fetches that are neither nested, off-thread, cached nor
// discarded, and survive an overrun of the records.
type Totals struct {
	Fetches    uint64 // delivered
	Wait       uint64 // ns inside next()
	Between    uint64 // ns from the end of a fetch to the start of the next
	NoGrad     uint64 // fetches
	LastEnd    uint64 // ns, end of the last fetch
	Batches    uint64 // built by this process
	FirstBegin uint64 // ns, begin of the first fetch
}

// Why a file in a spool cannot be read as a ring.
var (
	// ErrNotReady means that its process is still making it: try again later.
	ErrNotReady = errors.New("ring is not written yet")
	// ErrUnmade is the ErrNotReady of a file without a magic number: nothing was ever recorded in it, so nothing is lost if its
	// process has ended.
	ErrUnmade = fmt.Errorf("its process is still making it: %w", ErrNotReady)
	// ErrNotRing means that it never will be readable.
	ErrNotRing = errors.New("not a ring")
)

// ParseRingHeader decodes the first page of a ring and checks its geometry. It does not check that the file is as long
// as the header claims; OpenRing does.
func ParseRingHeader(b []byte) (RingHeader, error) {
	if len(b) < 8 || string(b[:8]) == "\x00\x00\x00\x00\x00\x00\x00\x00" {
		return RingHeader{}, ErrUnmade
	}
	if len(b) < ringFixed {
		return RingHeader{}, ErrNotReady
	}
	if string(b[:8]) != RingMagic {
		return RingHeader{}, ErrNotRing
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if v := u32(8); v != RingVersion {
		return RingHeader{}, fmt.Errorf("ring version %d: %w", v, ErrNewer)
	}
	h := RingHeader{
		Capacity: u32(20),
		Head:     u64(24), NoteBytes: u64(32), NotesDropped: u64(40), HookErrors: u64(48),
		State: RingState(u32(56)), Hook: HookState(u32(60)),
		Monotonic: u64(64), Realtime: u64(72),
		Step: u64(80), StepUnit: StepUnit(u32(88)), Parked: ParkState(u32(92)),
		Block: u64(96), Fetches: u64(104), EpochLength: u64(112), EpochBatch: u64(120),
		OwnTime: u64(128), OwnLooks: u64(136),
	}
	return h, h.check(u32(12), u32(16))
}

func (h RingHeader) check(headerBytes, recordBytes uint32) error {
	switch {
	case headerBytes != RingHeaderBytes:
		return fmt.Errorf("header of %d bytes: %w", headerBytes, ErrNotRing)
	case recordBytes != Size:
		return fmt.Errorf("records of %d bytes: %w", recordBytes, ErrNotRing)
	case h.Capacity == 0 || h.Capacity&(h.Capacity-1) != 0 || h.Capacity > maxCapacity:
		return fmt.Errorf("capacity of %d records: %w", h.Capacity, ErrNotRing)
	case h.Head > maxHead:
		return fmt.Errorf("head at record %d: %w", h.Head, ErrNotRing)
	}
	return nil
}

// Cost returns what the hook says of its own time; ok is false where it did not look.
func (h RingHeader) Cost() (note HookCostNote, ok bool) {
	return HookCostNote{NS: h.OwnTime, Fetches: h.OwnLooks}, h.OwnLooks != 0 && h.OwnLooks != Unknown64 && h.OwnTime != Unknown64
}

// Encode returns the header's fields as they stand at the start of the file.
func (h RingHeader) Encode() []byte {
	b := make([]byte, ringFixed)
	copy(b, RingMagic)
	for _, f := range []struct {
		at int
		v  uint32
	}{
		{8, RingVersion}, {12, RingHeaderBytes}, {16, Size}, {20, h.Capacity},
		{56, uint32(h.State)}, {60, uint32(h.Hook)}, {88, uint32(h.StepUnit)}, {92, uint32(h.Parked)},
	} {
		binary.LittleEndian.PutUint32(b[f.at:], f.v)
	}
	for _, f := range []struct {
		at int
		v  uint64
	}{
		{24, h.Head}, {32, h.NoteBytes}, {40, h.NotesDropped}, {48, h.HookErrors},
		{64, h.Monotonic}, {72, h.Realtime}, {80, h.Step},
		{96, h.Block}, {104, h.Fetches}, {112, h.EpochLength}, {120, h.EpochBatch}, {128, h.OwnTime}, {136, h.OwnLooks},
	} {
		binary.LittleEndian.PutUint64(b[f.at:], f.v)
	}
	return b
}

// ParseTotals decodes one 64-byte totals slot.
func ParseTotals(b []byte) (t Totals) {
	for i, p := range t.fields() {
		*p = binary.LittleEndian.Uint64(b[8*i:])
	}
	return t
}

// Encode returns the slot.
func (t Totals) Encode() []byte {
	b := make([]byte, TotalsBytes)
	for i, p := range t.fields() {
		binary.LittleEndian.PutUint64(b[8*i:], *p)
	}
	return b
}

// fields lists the sums in the order of the slot.
func (t *Totals) fields() []*uint64 {
	return []*uint64{&t.Fetches, &t.Wait, &t.Between, &t.NoGrad, &t.LastEnd, &t.Batches, &t.FirstBegin}
}
