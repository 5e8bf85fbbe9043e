// Package emulated reads the busy logs of the emulated device (recording SPEC §7) as a GPU source.
//
// It validates arithmetic and plumbing only: every device, note and record from here is marked emulated. A log is exact, so
// the windows are exact, with one exception: an entry is written when work is launched, and a process that is pushed
// off its core between reading the clock and writing may write it late. Windows are therefore closed a lag behind now, and an
// entry that still comes too late makes its windows untrusted, as do entries that contradict each other.
//
// Read [Source] first; the arithmetic is in windows.go.
package emulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/datawait/datawait/probe/gpu"
)

// Options of the source.
type Options struct {
	Dir      string        // where the busy logs lie
	Since    uint64        // CLOCK_MONOTONIC ns: no window begins before; 0 = when a device was made
	Interval time.Duration // of a window; 0 = 100 ms
	Lag      time.Duration // how far behind until windows are closed; 0 = 250 ms
	Locks    string        // the kernel's table of file locks; "" = /proc/locks
}

const (
	name         = "emulated"
	maxDevices   = 64
	maxWindows   = 4096 // of one device in one Sample; the rest follows with the next
	lowestWindow = time.Millisecond
)

// Source reads every gpu-<index>.busy of one folder. It implements [gpu.Source].
type Source struct {
	options Options
	devices []*device // by index
	bad     map[string]bool
	listed  time.Time // the folder's last change, when all that was in it had been seen; zero while that is not certain
}

// Open returns the source. The folder may be empty, or not there yet: devices appear when a script makes them.
func Open(o Options) (*Source, error) {
	o.Interval = cmp.Or(o.Interval, 100*time.Millisecond)
	o.Lag = cmp.Or(o.Lag, 250*time.Millisecond)
	o.Locks = cmp.Or(o.Locks, "/proc/locks")
	if o.Interval < lowestWindow {
		return nil, fmt.Errorf("opening the emulated source: a window of %v is shorter than %v", o.Interval, lowestWindow)
	}
	return &Source{options: o, bad: map[string]bool{}}, nil
}

// Name returns "emulated".
func (s *Source) Name() string { return name }

// Devices returns the devices whose logs are there by now.
func (s *Source) Devices(context.Context) ([]gpu.Device, error) {
	_, err := s.discover()
	devices := make([]gpu.Device, len(s.devices))
	for i, d := range s.devices {
		devices[i] = gpu.Device{Identity: gpu.Whole(d.header.UUID), Ref: d.ref(), Name: "emulated", Source: name,
			Grade: gpu.GradeA, Emulated: true} // the device's own log; that it is emulated is said apart
	}
	return devices, err
}

// Sample reads what was appended and returns the windows that ended a lag before until.
func (s *Source) Sample(ctx context.Context, until uint64) (batch gpu.Batch, err error) {
	batch.Changed, err = s.discover()
	horizon := until - min(until, uint64(s.options.Lag))
	locked := sync.OnceValue(func() locks { return readLocks(s.options.Locks) })
	for _, d := range s.devices {
		if ctx.Err() != nil {
			return batch, ctx.Err()
		}
		rejected := d.rejected
		if ferr := d.sample(until, horizon, locked, &batch.Windows); ferr != nil {
			batch.Failures = append(batch.Failures, gpu.Failure{Ref: d.ref(), Why: ferr.Error()})
		}
		batch.Rejected += d.rejected - rejected
	}
	return batch, err
}

// Close closes the logs.
func (s *Source) Close() error {
	var errs []error
	for _, d := range s.devices {
		errs = append(errs, d.log.close())
	}
	return errors.Join(errs...)
}

// settled is how old the last change of a folder must be for its time to tell it from the next one: no file system counts in larger steps.
const settled = 3 * time.Second

// discover opens the logs that have appeared. A file that is no log is remembered and reported once. A folder that has not changed is not
// listed again.
func (s *Source) discover() (found bool, err error) {
	now := time.Now()
	info, err := os.Stat(s.options.Dir)
	if err == nil && info.ModTime().Equal(s.listed) {
		return false, nil
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(s.options.Dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for busy logs: %w", err)
	}
	if s.listed = info.ModTime(); now.Sub(s.listed) < settled {
		s.listed = time.Time{}
	}
	var errs []error
	for _, e := range entries {
		index, ok := logIndex(e.Name())
		if !ok || s.bad[e.Name()] || len(s.devices) >= maxDevices || s.has(index) {
			continue
		}
		d, err := openDevice(filepath.Join(s.options.Dir, e.Name()), index, s.options)
		if errors.Is(err, errNotYet) {
			s.listed = time.Time{}
			continue
		}
		if err != nil {
			s.bad[e.Name()] = true
			errs = append(errs, err)
			continue
		}
		s.devices = append(s.devices, d)
		found = true
	}
	slices.SortFunc(s.devices, func(a, b *device) int { return cmp.Compare(a.index, b.index) })
	return found, errors.Join(errs...)
}

func (s *Source) has(index uint32) bool {
	return slices.ContainsFunc(s.devices, func(d *device) bool { return d.index == index })
}

// logIndex returns the device number of a busy log's file name. It must fit a record's Ref.
func logIndex(file string) (uint32, bool) {
	text, ok := strings.CutPrefix(file, "gpu-")
	if !ok {
		return 0, false
	}
	text, ok = strings.CutSuffix(text, ".busy")
	index, err := strconv.ParseUint(text, 10, 16)
	return uint32(index), ok && err == nil && strconv.FormatUint(index, 10) == text
}
