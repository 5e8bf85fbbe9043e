package alloc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// slurm tells what Slurm gave out: the folder in which a prolog writes the jobs of each GPU, and, in a job, the job's own environment.
type slurm struct {
	folder string // of the job mapping, "" = none
	env    func(string) string
	numberer
}

func (s *slurm) by() string { return recording.AllocatedBySlurm }

// look joins both. Where they contradict each other nobody is believed.
func (s *slurm) look(_ context.Context, v View) (claims, error) {
	job, gpus, inJob := s.job()
	if s.folder == "" && !inJob {
		return nil, nil
	}
	numbers := s.now(v.GPUs)
	all, err := mapping{s.folder, numbers, v.GPUs}.read()
	var own claims
	var ownErr error
	if inJob {
		own, ownErr = given(job, gpus, numbers)
	}
	for uuid, c := range own {
		mapped := all[uuid]
		switch {
		case mapped == nil:
			if all == nil {
				all = claims{}
			}
			all[uuid] = c
		case !names(mapped, c.holders[0].Job):
			delete(all, uuid)
			err = errors.Join(err, fmt.Errorf("job %s has GPU %s by its environment, and not by the files in %s", c.holders[0].Job, uuid, s.folder))
		}
	}
	return all, errors.Join(err, ownErr)
}

func names(c *claim, job string) bool {
	for _, h := range c.holders {
		if h.Job == job {
			return true
		}
	}
	return false
}

// job returns what slurmd told the job that this process belongs to: its number, and the GPUs it was given. CUDA_VISIBLE_DEVICES is not
// looked at: it says what a process asks to see, not what it was given.
func (s *slurm) job() (id, gpus string, ok bool) {
	id = s.env("SLURM_JOB_ID")
	if !slurmJob.MatchString("job_" + id) {
		return "", "", false
	}
	gpus, ok = s.given()
	return id, gpus, ok && s.here(id)
}

// given reads the GPUs of a job.
func given(job, gpus string, numbers numbering) (claims, error) {
	all := claims{}
	for text := range strings.SplitSeq(gpus, ",") {
		if strings.HasPrefix(text, "GPU-") || strings.HasPrefix(text, "MIG-") {
			if isUUID(text) {
				all.add(text, recording.Holder{Job: job}, "")
			}
			continue
		}
		number, ok := small(text)
		if !ok {
			return nil, fmt.Errorf("reading the GPUs of job %s: %q is no number of a GPU", job, recording.Name(text))
		}
		uuid, err := numbers.whole(number)
		if err != nil {
			return nil, fmt.Errorf("reading the GPUs of job %s: %w", job, err)
		}
		all.add(uuid, recording.Holder{Job: job}, "")
	}
	return all, nil
}

// given returns the GPUs that the step, or the batch script, got on this node. srun hands the batch script's environment to steps on other
// nodes, where SLURM_JOB_GPUS means another node's GPUs: it counts on the script's own node alone, which is the first (srun(1), sbatch(1)).
func (s *slurm) given() (string, bool) {
	if step := s.env("SLURM_STEP_GPUS"); step != "" {
		return step, true
	}
	if node := s.env("SLURM_NODEID"); node != "" && node != "0" {
		return "", false
	}
	gpus := s.env("SLURM_JOB_GPUS")
	return gpus, gpus != ""
}

// here reports whether this process runs on a node of the job: salloc gives a job's environment to a shell on the login node.
// Where slurmd makes control groups the process is in the job's, else SLURMD_NODENAME is told to none but processes of a node.
func (s *slurm) here(job string) bool {
	if b, err := readSmall(filepath.Join(s.proc, "self/cgroup")); err == nil {
		for line := range strings.Lines(string(b)) {
			if of := jobOf(strings.TrimSpace(line)); of != "" {
				return of == job
			}
		}
	}
	return s.env("SLURMD_NODENAME") != ""
}

// environment is the process's own.
func environment(name string) string { return os.Getenv(name) }
