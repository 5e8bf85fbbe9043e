package shelf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/recording"
)

// Job is a job that has recordings.
type Job struct {
	Tenant live.Tenant
	Dir    string
	Slices []Slice // in the order of time
}

// Slice is one recording of a job.
type Slice struct {
	Dir   string
	Began time.Time
	Ended time.Time // of its last write
	Bytes int64
}

// Recordings is the folder of the jobs below a state folder.
const Recordings = "recordings"

// ErrNoJob is that there is no recording of that job.
var ErrNoJob = errors.New("no such job is recorded")

// short is how long a slice must be to be preferred to the one before it.
const short = 2 * time.Minute

// Find returns the newest recording of a job that is worth reading: one that was only just begun gives way to the one before. The job is
// named as its metrics name it, or as namespace/job, or namespace/job/pod.
func Find(state, name string) (string, error) {
	jobs, err := Jobs(filepath.Join(state, Recordings))
	if err != nil {
		return "", err
	}
	found := slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return len(j.Slices) == 0 || !j.called(name) })
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: %q; there are %s", ErrNoJob, name, listed(jobs))
	case 1:
	default:
		return "", fmt.Errorf("%w by that name alone: %q may be %s", ErrNoJob, name, listed(found))
	}
	all := found[0].Slices
	best := all[len(all)-1]
	if len(all) > 1 && best.Ended.Sub(best.Began) < short {
		best = all[len(all)-2]
	}
	return best.Dir, nil
}

func (j Job) called(name string) bool {
	t := j.Tenant
	return name == t.Job || name == t.Namespace+"/"+t.Job || name == t.Namespace+"/"+t.Job+"/"+t.Pod
}

func (j Job) String() string {
	if j.Tenant.Namespace == "" {
		return j.Tenant.Job
	}
	return j.Tenant.Namespace + "/" + j.Tenant.Job + "/" + j.Tenant.Pod
}

func listed(jobs []Job) string {
	var names []string
	for _, j := range jobs {
		if len(j.Slices) > 0 {
			names = append(names, j.String())
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Jobs lists what is on the shelf, in the order of names. A folder that holds something else is left alone.
func Jobs(dir string) (jobs []Job, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for recordings: %w", err)
	}
	for _, e := range entries {
		if j, ok := jobIn(filepath.Join(dir, e.Name())); ok {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// mostAbout bounds the file that says whose a folder is, in bytes.
const mostAbout = 1 << 16

func jobIn(dir string) (j Job, ok bool) {
	j.Dir = dir
	f, err := recording.OpenRegular(filepath.Join(dir, about))
	if err != nil {
		return j, false
	}
	defer f.Close()
	if json.NewDecoder(io.LimitReader(f, mostAbout)).Decode(&j.Tenant) != nil {
		return j, false
	}
	j.Slices = slicesOf(dir)
	return j, true
}

func slicesOf(dir string) (all []Slice) {
	entries, _ := os.ReadDir(dir) // what cannot be read has no slices
	for _, e := range entries {
		began, err := time.Parse(sliceForm, e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		s := Slice{Dir: filepath.Join(dir, e.Name()), Began: began, Ended: began}
		_ = filepath.WalkDir(s.Dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				s.Bytes += info.Size()
				if info.ModTime().After(s.Ended) {
					s.Ended = info.ModTime()
				}
			}
			return nil
		})
		all = append(all, s)
	}
	return all
}
