// Package gpu is what datawait asks of a GPU, whoever answers: the emulated device, DCGM, NVML or a scraped exporter.
//
// It decides two things. Data and health are apart: a source that fails returns no window, never a window of zeros, and
// says why. And every choice keeps its reason: for each GPU it is known which source was taken and why no better one
// ([Choose]). Values are windows in CLOCK_MONOTONIC, ratios are 0–1, and what a source cannot measure is NaN.
//
// Sources live in packages below this one; those that need NVIDIA's libraries run in a child process (package child).
// Read [Source] and [Batch] first.
package gpu

import (
	"context"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Source reads the counters of the GPUs of this machine. It is for one goroutine, and its calls may block on a driver: a
// caller that must not hang runs it in a child process.
type Source interface {
	// Name is the rung of the ladder, as in reports: "dcgm", "nvml-gpm", "emulated".
	Name() string

	// Devices returns the GPUs the source can see, also those it has no counters for. The error says why the source does
	// not work at all.
	Devices(ctx context.Context) ([]Device, error)

	// Sample returns the windows that were complete at until (CLOCK_MONOTONIC, ns) and not returned before. The error means
	// that the source as a whole failed this time; the batch then still holds what was read before the failure.
	Sample(ctx context.Context, until uint64) (Batch, error)

	// Close releases the counters. The source is not used afterwards.
	Close() error
}

// Selective is a source that disturbs others, and so counts only the devices it is told to. It is told before its first Sample.
type Selective interface {
	Use(refs []uint16)
}

// Batch is the outcome of one Sample. Ref is the device's in every record of it.
type Batch struct {
	Windows   []recording.GPU        // by device in order of time
	Pipes     []recording.GPUPipes   // further counters of some of the windows
	States    []recording.GPUState   // by device in order of time
	Processes []recording.GPUProcess // that had a context at the last look
	Events    []recording.GPUEvent
	Holders   []Holders // told since the last time, where that has changed
	Failures  []Failure // devices that gave nothing this time
	Rejected  uint64    // raw values that could not be true, were too late to count, or made a window untrusted
	Changed   bool      // GPUs came or went, or their reasons changed: ask Devices again
}

// add appends what other holds, its refs translated; what has no translation is left out.
func (b *Batch) add(other Batch, refs map[uint16]uint16) {
	b.Windows = translate(b.Windows, other.Windows, refs, func(r *recording.GPU) *uint16 { return &r.Ref })
	b.Pipes = translate(b.Pipes, other.Pipes, refs, func(r *recording.GPUPipes) *uint16 { return &r.Ref })
	b.States = translate(b.States, other.States, refs, func(r *recording.GPUState) *uint16 { return &r.Ref })
	b.Processes = translate(b.Processes, other.Processes, refs, func(r *recording.GPUProcess) *uint16 { return &r.Ref })
	b.Events = translate(b.Events, other.Events, refs, func(r *recording.GPUEvent) *uint16 { return &r.Ref })
	b.Holders = translate(b.Holders, other.Holders, refs, func(h *Holders) *uint16 { return &h.Ref })
	b.Failures = translate(b.Failures, other.Failures, refs, func(f *Failure) *uint16 { return &f.Ref })
	b.Rejected += other.Rejected
	b.Changed = b.Changed || other.Changed
}

func translate[T any](all, more []T, refs map[uint16]uint16, ref func(*T) *uint16) []T {
	for _, v := range more {
		at := ref(&v)
		if to, ok := refs[*at]; ok {
			*at = to
			all = append(all, v)
		}
	}
	return all
}

// Holders says to whom one device is assigned, as a source has read it somewhere.
type Holders struct {
	Ref                      uint16
	recording.AllocationNote // without its UUID
}

// Failure says why one device gave no data.
type Failure struct {
	Ref uint16
	Why string
}

// Grade says how much evidence a number is (DESIGN: A the GPU's own counters, B one source or coarse, C inferred).
type Grade string

// Grades, best first.
const (
	GradeA Grade = "A"
	GradeB Grade = "B"
	GradeC Grade = "C"
)

// Identity names a GPU, or a slice of one, across sources. Never an index: CUDA, NVML and DCGM number the same GPUs differently,
// and a container sees a part of them.
type Identity struct {
	UUID   string // "GPU-…", or "MIG-…" for a slice
	Parent string // UUID of the physical GPU of a slice, else ""
	GI     int    // GPU instance of a slice, else -1
	CI     int    // compute instance of a slice, else -1
}

// same reports whether both name one device. A slice is known by its GPU and instances where a source does not tell its UUID.
func (id Identity) same(other Identity) bool {
	if id.UUID != "" && other.UUID != "" {
		return id.UUID == other.UUID
	}
	return id.Parent != "" && id.Parent == other.Parent && id.GI == other.GI && id.CI == other.CI
}

// Whole returns the identity of an undivided GPU.
func Whole(uuid string) Identity { return Identity{UUID: uuid, GI: -1, CI: -1} }

// Device is one GPU as one source sees it.
type Device struct {
	Identity
	Ref      uint16 // of its windows, unique within the source
	Name     string // model, as "NVIDIA A100-SXM4-80GB"
	Source   string // where its counters come from, Source.Name
	Grade    Grade  // of its SM activity
	Emulated bool
	Missing  string            // why this source has no SM activity of it; "" = it has
	Partly   bool              // of a device without SM activity: there are windows of it all the same
	Why      string            // why this source and no better one; filled in by Choose
	Interval uint64            // ns, of its windows as the source was asked; 0 = not known
	Index    unit.Maybe[int64] // of the GPU, or of the one a slice is cut from, as NVML and DCGM number them
}

// Note returns the device as a recording keeps it.
func (d Device) Note() recording.GPUNote {
	why := d.Why
	switch {
	case d.Missing != "" && why != "":
		why += "; " + d.Source + ": " + d.Missing
	case d.Missing != "":
		why = d.Missing
	}
	note := recording.GPUNote{GPU: d.Ref, UUID: d.UUID, Name: d.Name, Source: d.Source, Emulated: d.Emulated, Grade: string(d.Grade), Why: why, Parent: d.Parent,
		Index: d.Index}
	if d.Parent != "" {
		note.GI, note.CI = instance(d.GI), instance(d.CI)
	}
	if d.Interval != 0 {
		note.Interval = unit.Some(d.Interval)
	}
	return note
}

func instance(n int) unit.Maybe[int64] {
	if n < 0 {
		return unit.None[int64]("not a slice of that kind")
	}
	return unit.Some(int64(n))
}
