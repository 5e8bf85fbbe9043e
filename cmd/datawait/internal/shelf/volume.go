package shelf

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// volume is one job's recording on its way.
type volume struct {
	tenant   live.Tenant
	writer   *recording.Writer // of the slice that is written, nil between two
	began    time.Time
	from     uint64                                    // ns, CLOCK_MONOTONIC: where the slice begins
	bytes    int64                                     // of records in it
	ids      map[recording.StreamID]recording.StreamID // as the slice numbers them
	told     map[gpuKey]bool                           // GPUs of which the slice knows what they are
	recorded bool                                      // a slice was begun before
	last     time.Time                                 // when the job was seen to run
	ended    uint64                                    // ns, CLOCK_MONOTONIC: when the last of its training processes ended; 0 = some run
	failed   error                                     // why no slice is written; it is tried again at retry
	retry    time.Time
}

// open begins a slice.
func (s *Shelf) open(v *volume, first *stream) error {
	if s.written() >= mostVolumes {
		return fmt.Errorf("recording job %s: %w", v.tenant.Job, errCrowded)
	}
	now, o := time.Now(), s.options
	v.began, v.last, v.bytes, v.from = now, now, 0, clock.Mono()
	if !v.recorded && first.declaration.Opened != 0 {
		v.from = min(v.from, first.declaration.Opened)
	}
	v.recorded = true
	clear(v.ids)
	clear(v.told)
	dir := filepath.Join(o.Dir, folderOf(v.tenant))
	err := describe(dir, v.tenant)
	if err == nil {
		v.writer, err = recording.Create(filepath.Join(dir, now.UTC().Format(sliceForm)), recording.Manifest{
			Version: o.Version, Host: o.Host, BootID: o.BootID, Command: first.declaration.Argv,
			StartedAt: now.Add(-time.Duration(clock.Mono() - v.from)), StartedMonotonic: v.from,
			Options: map[string]any{"mode": "serve", "throwaway": false, "job": v.tenant.Job, "slice_seconds": o.Slice.Seconds()},
		}, recording.Options{})
	}
	if err != nil {
		return fmt.Errorf("recording job %s: %w", v.tenant.Job, err)
	}
	for id, st := range s.streams { // the machine, as far as it is known
		if st.agent() && (st.only == nil || *st.only == v.tenant) {
			if err := v.declare(id, st); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostVolumes is how many jobs are recorded at once: each has a file that is open, and whoever starts thousands of processes that each call
// themselves a job of their own must not fill the disk with folders.
const mostVolumes = 256

var errCrowded = errors.New("too many jobs are recorded at once")

func (s *Shelf) written() (n int) {
	for _, v := range s.volumes {
		if v.writer != nil {
			n++
		}
	}
	return n
}

// sliceForm is how slices are called: by the time they begin, so that names sort by it.
const sliceForm = "20060102T150405.000Z"

// folderOf names a job's folder: by its name, as far as a file can be called so, and by what tells it from all others.
func folderOf(t live.Tenant) string {
	h := sha256.New() // nobody finds a name that has another's folder
	fmt.Fprintf(h, "%q %q %q", t.Namespace, t.Pod, t.Job)
	name := recording.NodeFolder(t.Job)[len(recording.NodeFolder("")):]
	return name[:min(len(name), 64)] + "-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// about is the file that says whose a folder is.
const about = "job.json"

func describe(dir string, t live.Tenant) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, about), b, 0o600)
}

// declare introduces a stream in the slice, with what it told before. What it told of GPUs follows where the job has them.
func (v *volume) declare(id recording.StreamID, st *stream) error {
	to, err := v.writer.Declare(st.declaration)
	if err != nil {
		return err
	}
	v.ids[id] = to
	for _, raw := range st.notes {
		if len(gpusOf(raw)) == 0 {
			err = errors.Join(err, v.writer.Note(to, raw))
		}
	}
	return err
}

// gpuKey is a GPU as a stream calls it.
type gpuKey struct {
	stream recording.StreamID
	uuid   string
}

// gpusOf lists the GPUs that a note of an agent is about.
func gpusOf(raw json.RawMessage) (uuids []string) {
	var told recording.Notes
	told.Add(raw)
	for _, g := range told.GPUs {
		uuids = append(uuids, g.UUID)
	}
	for _, a := range told.Allocations {
		uuids = append(uuids, a.UUID)
	}
	return uuids
}

func (v *volume) records(id recording.StreamID, st *stream, records []recording.Record) error {
	if v.writer == nil || v.writer.Err() != nil || len(records) == 0 {
		return nil
	}
	if v.ids[id] == 0 {
		if err := v.declare(id, st); err != nil {
			return err
		}
	}
	if st.agent() {
		for i := range records {
			if uuid, ok := st.gpus[records[i].Ref()]; ok && ofGPU(records[i].Kind()) {
				if err := v.tell(id, st, uuid); err != nil {
					return err
				}
			}
		}
	}
	v.bytes += int64(len(records)) * recording.Size
	return v.writer.Records(v.ids[id], records)
}

// tell tells once what a stream has told of a GPU.
func (v *volume) tell(id recording.StreamID, st *stream, uuid string) (err error) {
	key := gpuKey{id, uuid}
	if v.told[key] {
		return nil
	}
	v.told[key] = true
	for _, raw := range st.notes {
		if slices.Contains(gpusOf(raw), uuid) {
			err = errors.Join(err, v.writer.Note(v.ids[id], raw))
		}
	}
	return err
}

func (v *volume) note(id recording.StreamID, raw json.RawMessage) error {
	if v.writer == nil || v.writer.Err() != nil {
		return nil
	}
	return v.writer.Note(v.ids[id], raw)
}

func (v *volume) end(id recording.StreamID) {
	if to := v.ids[id]; to != 0 && v.writer != nil {
		v.writer.End(to)
		delete(v.ids, id)
	}
}

// leave ends the slice: at the job's own end, if that has come.
func (v *volume) leave() error {
	if v.writer == nil {
		return nil
	}
	e := recording.Ending{At: time.Now(), Monotonic: clock.Mono(), By: recording.EndedBySlice, Hook: recording.HookSummary{Attached: true, Spools: len(v.ids)}}
	if v.ended != 0 {
		e.At = e.At.Add(-time.Duration(e.Monotonic - min(v.ended, e.Monotonic)))
		e.Monotonic, e.By = v.ended, recording.EndedByCommand
	}
	err := v.writer.Close(e)
	v.writer = nil
	clear(v.ids)
	return err
}
