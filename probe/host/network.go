package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/datawait/datawait/probe/recording"
)

// sampleNetwork writes one NET record for each interface and each InfiniBand port that ever received something. The interfaces are those of the
// job's network namespace, once a process of the job is there: a container's job does not see the machine's.
func (h *Host) sampleNetwork() error {
	h.devices.ready()
	if err := h.tree.scan(); err != nil {
		return err
	}
	at := h.now()
	b, err := h.interfaces()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no network interfaces to be seen: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return err
	}
	type line struct {
		name     string
		received uint64
	}
	var lines []line
	parseInterfaces(b, func(name []byte, received uint64) { lines = append(lines, line{string(name), received}) })
	for _, l := range lines {
		err = errors.Join(err, h.sampleInterface(at, l.name, l.received, h.meetInterface))
	}
	return errors.Join(err, h.sampleInfiniband())
}

// interfaces reads the interfaces of the job's network namespace, the agent's own while there is no job. When that is another
// namespace than before, counters start anew: its eth0 is not the eth0 of the last sample.
func (h *Host) interfaces() ([]byte, error) {
	if head := h.tree.head(); head != nil {
		if b, err := h.files.read(h.files.ofProcess(head.pid, "net/dev")); err == nil {
			h.enterNetwork(h.networkOf(strconv.Itoa(head.pid)))
			return b, nil
		}
	}
	h.enterNetwork(h.networkOf("self"))
	return h.files.read(h.files.Proc + "/self/net/dev")
}

// networkOf returns the identity of a process's network namespace. Where the link is hidden the process itself stands for it.
func (h *Host) networkOf(process string) string {
	if space, err := readLink(h.files.Proc + "/" + process + "/ns/net"); err == nil {
		return space
	}
	return "of process " + process
}

func (h *Host) enterNetwork(space string) {
	if h.devices.network != space {
		for _, d := range h.devices.interfaces {
			d.at = 0
		}
	}
	h.devices.network = space
}

func (h *Host) sampleInterface(at uint64, name string, received uint64, meet func(string, *device) string) error {
	if received == 0 {
		return nil
	}
	d, err := h.device(recording.ClassNet, h.devices.interfaces, name, meet)
	if err != nil || d.skip {
		return err
	}
	before, from := d.received, d.at
	d.received, d.at = received, at
	delta := growth(received, before)
	if from == 0 || at <= from || delta == unknown {
		return nil
	}
	r := recording.Device{Ref: d.ref, Begin: from, End: at, Ops: nan, ReadWait: nan}
	r.Read = perSecond(delta, at-from)
	r.Busy = float32(min(1, float64(r.Read)/d.capacity))
	return h.out.Append(r.Encode(recording.KindNet))
}

// meetInterface reads what does not change: whether there is hardware behind the interface, and its speed in Mbit/s, which
// is -1 or an error where there is none (Documentation/ABI/testing/sysfs-class-net).
func (h *Host) meetInterface(name string, d *device) string {
	if name == loopback {
		return recording.SortLoopback
	}
	folder := h.files.Sys + "/class/net/" + name
	if b, err := h.files.read(folder + "/speed"); err == nil {
		if v, ok := onlyNumber(b); ok && v > 0 {
			d.capacity = float64(v) * 1e6 / 8
		}
	}
	if exists(folder + "/device") {
		return recording.SortPhysical
	}
	return recording.SortVirtual
}
