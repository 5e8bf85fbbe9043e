package host

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/probe/recording"
)

// pressureProbe keeps the previous totals, by Ref.
type pressureProbe [2]struct {
	at    uint64 // ns; 0 before the first sample
	total stalls
}

// samplePressure writes a PRESSURE record of the machine, and one of the job's control group where that has its own totals:
// version 2 only.
func (h *Host) samplePressure() error {
	machine := [3]string{h.files.Proc + "/pressure/cpu", h.files.Proc + "/pressure/io", h.files.Proc + "/pressure/memory"}
	if err := h.pressureOf(recording.PressureOfMachine, machine); err != nil {
		return err
	}
	if h.limits.groups == nil {
		return nil
	}
	c, err := h.limits.groups.unified()
	if err == nil && len(c.folders) == 1 && c.outermostOfMachine() {
		return nil // its pressure is the machine's
	}
	if err == nil {
		folder := c.folders[0]
		err = h.pressureOf(recording.PressureOfJob, [3]string{folder + "/cpu.pressure", folder + "/io.pressure", folder + "/memory.pressure"})
	}
	h.because("pressure of the job", reason(err))
	return nil
}

// unified returns the process's group in the version 2 hierarchy.
func (g *groups) unified() (chain, error) {
	v2 := groups{files: g.files, mounts: g.mounts, members: membership{v2: g.members.v2}}
	return v2.chainOf("pressure")
}

// pressureOf writes the record of one group of processes. A resource that cannot be read is unknown; an error means that
// none can.
func (h *Host) pressureOf(ref uint16, paths [3]string) error {
	at := h.now()
	cur := unknownStalls
	var failed error
	read := 0
	for i, s := range []*stall{&cur.cpu, &cur.io, &cur.memory} {
		got, err := h.stall(paths[i])
		if err != nil {
			failed = err
			continue
		}
		*s = got
		read++
	}
	if read == 0 {
		return failed
	}
	before := h.pressure[ref]
	h.pressure[ref].at, h.pressure[ref].total = at, cur
	if before.at == 0 || at <= before.at {
		return nil
	}
	w, p := at-before.at, before.total
	return h.out.Append(recording.Pressure{Ref: ref, Begin: before.at, End: at,
		CPUSome:    overWindow(cur.cpu.some, p.cpu.some, w),
		IOSome:     overWindow(cur.io.some, p.io.some, w),
		IOFull:     overWindow(cur.io.full, p.io.full, w),
		MemorySome: overWindow(cur.memory.some, p.memory.some, w),
		MemoryFull: overWindow(cur.memory.full, p.memory.full, w),
	}.Encode())
}

// stall reads one file of pressure stall information. A kernel without it has no file, one that has it switched off
// refuses to open it (kernel/sched/psi.c, psi_cpu_open and CONFIG_PSI_DEFAULT_DISABLED).
func (h *Host) stall(path string) (stall, error) {
	b, err := h.files.read(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) {
		return stall{}, fmt.Errorf("%w: this kernel keeps no pressure stall information (boot it with psi=1): %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return stall{}, err
	}
	return parseStall(b)
}
