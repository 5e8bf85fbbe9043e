package shelf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/datawait/datawait/analysis/live"
)

// quiet is a job that nobody writes. As long as nothing is made or removed in its folder it is what it was: of the hundreds of jobs of a
// week, each minute, one look at each is all.
type quiet struct {
	changed time.Time // of the folder
	job     Job
}

// tidy throws away the oldest slices of a job that has too many bytes, then the oldest of all, and jobs of long ago or beyond the number
// that is kept. What is being written stays.
func (s *Shelf) tidy(now time.Time) error {
	jobs, err := s.jobs()
	if err != nil {
		return err
	}
	var errs []error
	var closed []Slice // oldest first, once sorted
	total := int64(0)
	for _, j := range jobs {
		kept, err := s.trim(j, now)
		errs = append(errs, err)
		for _, k := range kept {
			total += k.Bytes
		}
		if n := len(kept); n > 0 && s.isOpen(j.Tenant) {
			kept = kept[:n-1]
		}
		closed = append(closed, kept...)
	}
	slices.SortFunc(closed, func(a, b Slice) int { return a.Ended.Compare(b.Ended) })
	for len(closed) > 0 && total > s.options.All {
		total -= closed[0].Bytes
		errs = append(errs, os.RemoveAll(closed[0].Dir))
		closed = closed[1:]
	}
	return errors.Join(append(errs, s.thin(jobs))...)
}

// trim throws away what one job has too much, and the job if nothing is left of it.
func (s *Shelf) trim(j Job, now time.Time) (kept []Slice, err error) {
	var errs []error
	bytes := int64(0)
	for _, k := range slices.Backward(j.Slices) {
		bytes += k.Bytes
		if old := now.Sub(k.Ended) >= s.options.Age; old || bytes > s.options.Keep && len(kept) > 0 {
			errs = append(errs, os.RemoveAll(k.Dir))
			continue
		}
		kept = append(kept, k)
	}
	if len(kept) == 0 && !s.isOpen(j.Tenant) {
		errs = append(errs, os.RemoveAll(j.Dir))
	}
	slices.Reverse(kept)
	return kept, errors.Join(errs...)
}

// thin throws away the jobs that ended first, of more than are kept.
func (s *Shelf) thin(jobs []Job) error {
	var errs []error
	closed := slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return s.isOpen(j.Tenant) })
	slices.SortFunc(closed, func(a, b Job) int { return a.ended().Compare(b.ended()) })
	for _, j := range closed[:min(max(0, len(jobs)-s.options.Jobs), len(closed))] {
		errs = append(errs, os.RemoveAll(j.Dir))
	}
	return errors.Join(errs...)
}

// ended is when a job was written last; the zero Time if nothing is left of it.
func (j Job) ended() (last time.Time) {
	for _, k := range j.Slices {
		if k.Ended.After(last) {
			last = k.Ended
		}
	}
	return last
}

// jobs lists what is on the shelf, as [Jobs] does.
func (s *Shelf) jobs() (jobs []Job, err error) {
	entries, err := os.ReadDir(s.options.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for recordings: %w", err)
	}
	still := map[string]quiet{}
	for _, e := range entries {
		dir := filepath.Join(s.options.Dir, e.Name())
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		q, known := s.quiet[dir]
		if !known || !q.changed.Equal(info.ModTime()) || s.isOpen(q.job.Tenant) {
			q.changed = info.ModTime()
			if q.job, known = jobIn(dir); !known {
				continue
			}
		}
		if !s.isOpen(q.job.Tenant) {
			still[dir] = q
		}
		jobs = append(jobs, q.job)
	}
	s.quiet = still
	return jobs, nil
}

func (s *Shelf) isOpen(t live.Tenant) bool {
	v := s.volumes[t]
	return v != nil && v.writer != nil
}
