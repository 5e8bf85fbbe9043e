package cost

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu/standin"
	"github.com/datawait/datawait/probe/recording"
)

// This test binary, started again with a part to play, is the training job that an agent is measured beside: a launcher, its ranks,
// and their workers, which write rings and busy logs as the hook and the emulated device do, and train nothing.
const (
	partVariable = "DATAWAIT_COST_PART"
	paceVariable = "DATAWAIT_COST_STEPS" // per second
	realVariable = "DATAWAIT_COST_REAL"  // not empty: the ranks use the stand-in's GPUs, not emulated ones
	jobRanks     = 8
	jobWorkers   = 2 // per rank
)

func TestMain(m *testing.M) {
	part := os.Getenv(partVariable)
	if part == "" {
		os.Exit(m.Run())
	}
	if err := play(part); err != nil {
		fmt.Fprintln(os.Stderr, part, err)
		os.Exit(1)
	}
}

// play is one process of the job; it ends when it is killed.
func play(part string) error {
	runtime.LockOSThread() // a child is killed when the thread ends that started it
	pace, err := strconv.Atoi(os.Getenv(paceVariable))
	if err != nil {
		return err
	}
	var number int
	switch {
	case part == "launcher":
		for i := range jobRanks {
			if err := start(fmt.Sprint("rank ", i)); err != nil {
				return err
			}
		}
		time.Sleep(24 * time.Hour)
		return nil
	case sscan(part, "rank %d", &number):
		for range jobWorkers {
			if err := start("worker"); err != nil {
				return err
			}
		}
		return train(number, pace)
	}
	return build(pace)
}

func sscan(text, form string, into ...any) bool {
	n, err := fmt.Sscanf(text, form, into...)
	return err == nil && n == len(into)
}

func start(part string) error {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), partVariable+"="+part)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Stderr = os.Stderr
	return c.Start()
}

// ring makes the ring of this process.
func ring(d recording.Declaration, capacity uint32) (*recording.RingWriter, error) {
	d.PID, d.PPID = os.Getpid(), os.Getppid()
	d.StartTicks = run.StartTicks(d.PID)
	return recording.CreateRing(filepath.Join(os.Getenv("DATAWAIT_SPOOL"), recording.RingName(d.PID, d.StartTicks)), capacity, d)
}

// train writes what a rank and its device do: a step waits for 30 % of its time and then computes for 60 %.
func train(number, pace int) error {
	uuid, emulated := fmt.Sprintf("GPU-emulated-%d", number), true
	if os.Getenv(realVariable) != "" {
		uuid, emulated = standin.UUID(number), false
	}
	w, err := ring(recording.Declaration{Producer: recording.ProducerMain, Rank: &number, LocalRank: &number, GPUUUID: &uuid, Emulated: emulated}, recording.MainCapacity)
	if err != nil {
		return err
	}
	device, err := newBusyLog(number, uuid)
	if err != nil {
		return err
	}
	length := uint64(time.Second) / uint64(pace)
	write := func(r recording.Record) {
		if err == nil {
			err = w.Write(r)
		}
	}
	for step, next := uint32(0), clock.Mono(); err == nil; step++ {
		next += length
		enter, exit := next, next+length*3/10
		write(recording.Fetch{Enter: enter, Exit: exit, Batch: step, Step: step, Thread: uint32(os.Getpid()), CPU: recording.Unknown64, Ready: 1}.Encode())
		write(recording.Step{Begin: recording.Unknown64, End: exit + length/10, Step: step + 1, Thread: uint32(os.Getpid()), CPU: recording.Unknown64}.Encode())
		if step >= 8 {
			write(recording.Exposed{Flags: recording.ExposedEmu, T: exit, Idle: length * 2 / 10, Span: length * 6 / 10, Fetch: 3*step - 23}.Encode())
		}
		if err == nil {
			err = device.compute(exit, length*6/10)
		}
		pause(next)
	}
	return err
}

// build writes what a worker does: its share of the batches of its rank.
func build(pace int) error {
	w, err := ring(recording.Declaration{Producer: recording.ProducerWorker, Parent: os.Getppid()}, recording.WorkerCapacity)
	length := uint64(time.Second) * jobWorkers / uint64(pace)
	for index, next := uint32(0), clock.Mono(); err == nil; index++ {
		next += length
		for _, r := range []recording.Record{
			recording.Batch{Ref: recording.Unknown16, Received: next, Begin: next, End: next + length, Sent: next + length, Batch: index, Samples: 64}.Encode(),
			recording.Cost{Ref: recording.Unknown16, CPU: length, ProcessCPU: length, RunQueue: 0, Collate: length / 10, Bytes: 1 << 25, Files: 64}.Encode(),
			recording.IO{Ref: recording.Unknown16, RChar: 1 << 23, ReadBytes: 1 << 23, Syscalls: 100}.Encode(),
		} {
			if err == nil {
				err = w.Write(r)
			}
		}
		pause(next)
	}
	return err
}

// pause sleeps until a time of CLOCK_MONOTONIC, unless that is so near that the next step may as well come with this one.
func pause(until uint64) {
	if now := clock.Mono(); until > now+uint64(2*time.Millisecond) {
		time.Sleep(time.Duration(until - now))
	}
}

// busyLog is the log of an emulated device (SPEC §7).
type busyLog struct {
	f      *os.File
	number uint32
}

func newBusyLog(index int, uuid string) (*busyLog, error) {
	f, err := os.OpenFile(filepath.Join(os.Getenv("DATAWAIT_SPOOL"), fmt.Sprintf("gpu-%d.busy", index)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(recording.BusyHeader{Index: uint32(index), Created: clock.Mono(), UUID: uuid}.Encode())
	}
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	return &busyLog{f: f}, err
}

// compute launches a step's kernels: twenty of a slow step, two of a fast one.
func (l *busyLog) compute(begin, length uint64) error {
	kernels := uint64(20)
	if length < uint64(10*time.Millisecond) {
		kernels = 2
	}
	var entries []byte
	for i := range kernels {
		l.number++
		entries = append(entries, recording.BusyEntry{Start: begin + i*length/kernels, End: begin + (i+1)*length/kernels, SM: 0.9, Tensor: 0.4,
			Kind: recording.BusyKernel, Number: l.number}.Encode()...)
	}
	_, err := l.f.Write(entries)
	return err
}
