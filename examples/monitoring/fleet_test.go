package monitoring

import (
	"encoding/json"
	"math"
	"os/exec"
	"time"

	"github.com/datawait/datawait/examples/internal/trial"
)

// fleet holds what `datawait fleet` tells of the last hour against the jobs' own clocks, over a restart of the agent.
func (s *site) fleet(jobs map[string]own) {
	s.t.Helper()
	until := time.Now().Add(10 * time.Minute).UTC().Truncate(10 * time.Minute) // it asks about whole tens of minutes
	out, err := exec.Command(trial.Binary, "fleet", "--prometheus", s.server, "--since", "1h", "--until", until.Format(time.RFC3339), "--format", "json").Output()
	if err != nil {
		s.t.Errorf("datawait fleet: %v\n%s", err, out)
		return
	}
	var told struct {
		Workloads []struct {
			Job  string
			GPUs int
			Use  struct {
				Allocated *float64 `json:"allocated_gpu_hours"`
				Wait      *float64 `json:"data_wait_share"`
				Idle      struct {
					Hours *float64 `json:"gpu_hours"`
				}
			}
		}
	}
	if err := json.Unmarshal(out, &told); err != nil {
		s.t.Fatal(err)
	}
	seen := 0
	for _, w := range told.Workloads {
		job, ours := jobs[w.Job]
		if !ours {
			continue
		}
		seen++
		if w.Use.Allocated == nil || w.Use.Wait == nil || w.Use.Idle.Hours == nil {
			s.t.Errorf("datawait fleet does not know job %s: %s", w.Job, out)
			continue
		}
		// The agent was away for some seconds; from the ring's making to the process's end is a little more than the loop.
		if got := *w.Use.Allocated * 3600; math.Abs(got-job.Seconds) > 0.03*job.Seconds+8 {
			s.t.Errorf("datawait fleet: %v s were allocated to job %s, in its loop it was %v s", got, w.Job, job.Seconds)
		}
		if want := job.Wait / job.Seconds; math.Abs(*w.Use.Wait-want) > 0.05 {
			s.t.Errorf("datawait fleet: job %s waited for %v of its time, by its own clock for %v", w.Job, *w.Use.Wait, want)
		}
		if w.GPUs != 1 {
			s.t.Errorf("datawait fleet: job %s had %d GPUs", w.Job, w.GPUs)
		}
	}
	if seen != len(jobs) {
		s.t.Errorf("datawait fleet tells of %d jobs of %d: %s", seen, len(jobs), out)
	}
}
