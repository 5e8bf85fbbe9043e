package shelf

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// volume is one job's recording on its way.
type volume struct {
	tenant live.Tenant
	writer *recording.Writer // of the slice that is written, nil between two
	began  time.Time
	bytes  int64                                     // of records in it
	ids    map[recording.StreamID]recording.StreamID // as the slice numbers them
	last   time.Time                                 // when the job was seen to run
	failed bool                                      // the disk refused; tried again at retry
	retry  time.Time
}

// open begins a slice.
func (s *Shelf) open(v *volume, first *stream) error {
	now, o := time.Now(), s.options
	v.began, v.last, v.bytes = now, now, 0
	clear(v.ids)
	dir := filepath.Join(o.Dir, folderOf(v.tenant))
	err := describe(dir, v.tenant)
	if err == nil {
		v.writer, err = recording.Create(filepath.Join(dir, now.UTC().Format(sliceForm)), recording.Manifest{
			Version: o.Version, Host: o.Host, BootID: o.BootID, Command: first.declaration.Argv,
			StartedAt: now, StartedMonotonic: clock.Mono(),
			Options: map[string]any{"mode": "serve", "throwaway": false, "job": v.tenant.Job, "slice_seconds": o.Slice.Seconds()},
		}, recording.Options{})
	}
	if err != nil {
		v.failed, v.retry = true, now.Add(retryAfter)
		return fmt.Errorf("recording job %s: %w", v.tenant.Job, err)
	}
	for id, st := range s.streams { // the machine, as far as it is known
		if st.agent() && (st.only == nil || *st.only == v.tenant) {
			if err := v.declare(id, st, func(n *recording.Notes) bool { return s.speaksOf(v.tenant, n) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// sliceForm is how slices are called: by the time they begin, so that names sort by it.
const sliceForm = "20060102T150405.000Z"

// folderOf names a job's folder: by its name, as far as a file can be called so, and by what tells it from all others.
func folderOf(t live.Tenant) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q %q", t.Namespace, t.Pod, t.Job)
	name := recording.NodeFolder(t.Job)[len(recording.NodeFolder("")):]
	return name[:min(len(name), 64)] + "-" + hex.EncodeToString(h.Sum(nil))
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

// declare introduces a stream in the slice, with what it told before.
func (v *volume) declare(id recording.StreamID, st *stream, speaksOf func(*recording.Notes) bool) error {
	to, err := v.writer.Declare(st.declaration)
	if err != nil {
		return err
	}
	v.ids[id] = to
	for _, raw := range st.notes {
		var told recording.Notes
		if told.Add(raw); speaksOf == nil || speaksOf(&told) {
			err = errors.Join(err, v.writer.Note(to, raw))
		}
	}
	return err
}

func (v *volume) records(id recording.StreamID, st *stream, records []recording.Record) error {
	if v.writer == nil || v.writer.Err() != nil || len(records) == 0 {
		return nil
	}
	if v.ids[id] == 0 {
		if err := v.declare(id, st, nil); err != nil {
			return err
		}
	}
	v.bytes += int64(len(records)) * recording.Size
	return v.writer.Records(v.ids[id], records)
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

// leave ends the slice. The job goes on, so the recording ends before its run does.
func (v *volume) leave() error {
	if v.writer == nil {
		return nil
	}
	err := v.writer.Leave()
	v.writer = nil
	clear(v.ids)
	return err
}
