package host

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/probe/recording"
)

// maxDevices bounds how many disks, and how many interfaces, are recorded.
const maxDevices = 256

// device is one disk or interface that is recorded.
type device struct {
	ref      uint16
	skip     bool    // a partition, memory, or beyond maxDevices
	capacity float64 // bytes/s an interface can receive; NaN = not known
	at       uint64  // ns; 0 = not seen at the last sample
	disk     disk
	received uint64
}

// deviceBook keeps the devices by class and name.
type deviceBook struct {
	disks, interfaces map[string]*device
	named             map[string]uint16 // refs used up, by class
	network           string            // the namespace the interfaces belong to
	ports             []port
	portsAge          int // samples since ports was listed
}

// device returns the device of a name, after meeting it at first sight. meet fills in what does not change and returns its
// sort, or "" for a device that is not to be recorded.
func (h *Host) device(class string, known map[string]*device, name string, meet func(name string, d *device) string) (*device, error) {
	if d := known[name]; d != nil {
		return d, nil
	}
	d := &device{capacity: math.NaN()}
	sort := meet(name, d)
	ref := h.devices.named[class]
	d.skip = sort == "" || ref >= maxDevices
	if !d.skip {
		d.ref = ref
		if err := h.out.Note(recording.DeviceNameNote{Class: class, Ref: ref, Name: name, Sort: sort}); err != nil {
			return nil, err
		}
		h.devices.named[class]++
	}
	known[name] = d
	return d, nil
}

func (b *deviceBook) ready() {
	if b.named == nil {
		b.disks, b.interfaces, b.named = map[string]*device{}, map[string]*device{}, map[string]uint16{}
	}
}

// sampleDisks writes one DISK record for each whole disk that was ever used.
func (h *Host) sampleDisks() error {
	h.devices.ready()
	at := h.now()
	b, err := h.files.read(h.files.Proc + "/diskstats")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no disks to be seen: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return err
	}
	var lines []namedDisk // meeting a device reads files, and there is one buffer
	parseDisks(b, func(name []byte, d disk) { lines = append(lines, namedDisk{string(name), d}) })
	for _, l := range lines {
		err = errors.Join(err, h.sampleDisk(at, l.name, l.disk))
	}
	return err
}

type namedDisk struct {
	name string
	disk disk
}

func (h *Host) sampleDisk(at uint64, name string, cur disk) error {
	if cur.untouched() {
		return nil
	}
	d, err := h.device(recording.ClassDisk, h.devices.disks, name, h.meetDisk)
	if err != nil || d.skip {
		return err
	}
	before, from := d.disk, d.at
	d.disk, d.at = cur, at
	reads := growth(cur.reads, before.reads)
	if from == 0 || at <= from || reads == unknown {
		return nil
	}
	w := at - from
	r := recording.Device{Ref: d.ref, Begin: from, End: at,
		Read: perSecond(growth(cur.sectors, before.sectors), w) * sectorBytes,
		Ops:  perSecond(reads, w),
		Busy: overMillis(cur.busyMillis, before.busyMillis, w),
	}
	r.ReadWait = nan
	if millis := growth32(cur.readMillis, before.readMillis); reads > 0 && millis != unknown {
		r.ReadWait = float32(float64(millis) / 1e3 / float64(reads))
	}
	return h.out.Append(r.Encode(recording.KindDisk))
}

// meetDisk tells whole disks from partitions: only whole ones have a folder in /sys/block. A path of a multipath device is
// marked hidden there (Documentation/ABI/stable/sysfs-block).
func (h *Host) meetDisk(name string, _ *device) string {
	folder := h.files.Sys + "/block/" + sysName(name)
	if memoryDisk([]byte(name)) || !exists(folder) {
		return ""
	}
	if b, err := h.files.read(folder + "/hidden"); err == nil {
		if v, _ := onlyNumber(b); v == 1 {
			return ""
		}
	}
	if exists(folder + "/device") {
		return recording.SortPhysical
	}
	return recording.SortVirtual
}

// sysName is a device's name in /sys, where "/" is written "!" ("cciss/c0d0").
func sysName(name string) string {
	b := []byte(name)
	for i := range b {
		if b[i] == '/' {
			b[i] = '!'
		}
	}
	return string(b)
}

func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }
