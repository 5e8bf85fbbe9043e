package spool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// BenchmarkYardOfRanks is one look at the folders of ranks with four workers each, every ring with a new record: what an agent that is left
// running does every 2 s. Processes are looked for too.
func BenchmarkYardOfRanks(b *testing.B) {
	for _, ranks := range []int{8, 64} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) { pollYard(b, ranks) })
	}
}

func pollYard(b *testing.B, ranks int) {
	pids := []int{os.Getpid()} // the same five are every rank's processes
	for range 4 {
		cmd := exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { cmd.Process.Kill(); cmd.Wait() }()
		pids = append(pids, cmd.Process.Pid)
	}
	dir := b.TempDir()
	var rings []*recording.RingWriter
	for rank := range ranks {
		folder := filepath.Join(dir, fmt.Sprint("job-", rank))
		if err := os.Mkdir(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		for i, pid := range pids {
			producer := recording.ProducerWorker
			if i == 0 {
				producer = recording.ProducerMain
			}
			ticks := startTicks(b, pid)
			w, err := recording.CreateRing(filepath.Join(folder, recording.RingName(pid, ticks)), 1024, recording.Declaration{Producer: producer, PID: pid, StartTicks: ticks})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Abandon()
			rings = append(rings, w)
		}
	}
	y, err := OpenYard(dir, YardOptions{Sink: func(Folder) (recording.Sink, bool) { return &nowhere{}, true }})
	if err != nil {
		b.Fatal(err)
	}
	defer y.Close()
	now := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for _, w := range rings {
			w.Write(recording.Batch{}.Encode())
		}
		b.StartTimer()
		now += 2e9
		if err := y.Poll(now); err != nil {
			b.Fatal(err)
		}
	}
	if got := y.Counts().Followed; got != len(rings) {
		b.Fatalf("%d rings are followed, not %d", got, len(rings))
	}
}

func startTicks(b *testing.B, pid int) uint64 {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, ticks, ok := parseStat(stat)
	if !ok {
		b.Fatalf("no start time in %q", stat)
	}
	return ticks
}
