package serve

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/recording"
)

// crowd is the processes that jobs of a soak are made of: they live as long as the test, and do one job after the other. What they write,
// the test writes for them.
type crowd []int

const jobWorkers = 3

func newCrowd(t *testing.T) crowd {
	c := crowd{os.Getpid()}
	for range jobWorkers {
		cmd := exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		c = append(c, cmd.Process.Pid)
	}
	return c
}

// job is a short training with its workers.
type job struct {
	t       *testing.T
	folder  string
	gpu     string
	main    *recording.RingWriter
	workers []*recording.RingWriter
	step    uint32
}

// newJob makes the folder of a job, as a prolog does, and its rings, as its processes do. Of two jobs one has a name that came before;
// the first has one of its own.
func (c crowd) newJob(t *testing.T, spool string, number int, gpu string, now uint64) *job {
	t.Helper()
	j := &job{t: t, folder: filepath.Join(spool, fmt.Sprintf("job-%d", number)), gpu: gpu}
	name := fmt.Sprintf("tuning-%d", number)
	switch {
	case number == 0:
		name = "pretraining"
	case number%2 == 0:
		name = "train.py"
	}
	j.ok(os.Mkdir(j.folder, 0o755))
	ring := func(pid int, d recording.Declaration) *recording.RingWriter {
		d.PID, d.StartTicks, d.Opened, d.Host = pid, run.StartTicks(pid), now, "here"
		w, err := recording.CreateRing(filepath.Join(j.folder, recording.RingName(pid, d.StartTicks)), 1024, d)
		j.ok(err)
		return w
	}
	j.main = ring(c[0], recording.Declaration{Producer: recording.ProducerMain, Job: name, GPUUUID: &gpu, Argv: []string{"train.py"}})
	for _, pid := range c[1:] {
		j.workers = append(j.workers, ring(pid, recording.Declaration{Producer: recording.ProducerWorker, Parent: c[0], PPID: c[0]}))
	}
	j.ok(j.main.Note(recording.LoaderNote{Kind: "torch", Dataset: "Images"}))
	j.ok(j.main.Write(recording.Iterator{Begin: now, End: now + 1000, Workers: jobWorkers, Length: 1 << 20, Prefetch: 2}.Encode()))
	for i, pid := range c[1:] {
		j.ok(j.main.Write(recording.Worker{T: now, PID: uint32(pid), Worker: uint32(i)}.Encode()))
	}
	return j
}

func (j *job) ok(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

const jobPace = 4 // steps per second

// train writes what happens in one second.
func (j *job) train(now uint64) {
	const step = uint64(1e9) / jobPace
	for i := range uint64(jobPace) {
		begin := now + i*step
		worker := j.workers[int(j.step)%jobWorkers]
		j.ok(worker.Write(recording.Batch{Ref: recording.Unknown16, Received: begin, Begin: begin, End: begin + step/4, Sent: begin + step/4, Batch: j.step, Samples: 64}.Encode()))
		j.ok(worker.Write(recording.Cost{Ref: recording.Unknown16, CPU: step / 5, ProcessCPU: step / 5, Files: 64}.Encode()))
		flags := uint8(0)
		if j.step == 0 {
			flags = recording.FetchFirst
		}
		j.ok(j.main.Write(recording.Fetch{Flags: flags, Enter: begin, Exit: begin + step/3, Batch: j.step, Step: j.step, CPU: recording.Unknown64}.Encode()))
		j.step++
		j.ok(j.main.Write(recording.Step{Begin: recording.Unknown64, End: begin + step - 1, Step: j.step, CPU: recording.Unknown64}.Encode()))
	}
}

// end is what processes do at their end.
func (j *job) end(now uint64) {
	j.ok(j.main.Note(recording.EndedNote{T: now}))
	j.ok(j.main.Close())
	for _, w := range j.workers {
		j.ok(w.Close())
	}
}

// epilog takes the folder of a job away; the agent has taken the rings.
func (j *job) epilog() {
	j.t.Helper()
	j.ok(os.Remove(j.folder)) // which fails on a folder that is not empty
}
