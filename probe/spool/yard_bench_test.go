package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// BenchmarkYardPoll is a look at thousands of folders in which nothing happens: dead spools that nobody has removed, all of root or all of
// one user. It is held against one readdir of the yard.
func BenchmarkYardPoll(b *testing.B) {
	for name, uid := range map[string]int{"of-root": 0, "of-one-user": 1000} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			for i := range 5000 {
				path := filepath.Join(dir, fmt.Sprint("job", i))
				if err := os.Mkdir(path, 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.Chown(path, uid, uid); err != nil {
					b.Skip(err)
				}
			}
			y, err := OpenYard(dir, YardOptions{Sink: func(Folder) (recording.Sink, bool) { return recording.NewMemory(recording.Manifest{}), true }})
			if err != nil {
				b.Fatal(err)
			}
			defer y.Close()
			now := uint64(1)
			for b.Loop() {
				now += 2 * second
				if err := y.Poll(now); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(y.places)), "followed")
		})
	}
}

// BenchmarkYardHostileRings is a look at the rings of one user that claim to be overrun at every look.
func BenchmarkYardHostileRings(b *testing.B) {
	dir := b.TempDir()
	pid, ticks := os.Getpid(), uint64(0)
	if stat, err := os.ReadFile("/proc/self/stat"); err == nil {
		_, ticks, _ = parseStat(stat)
	}
	var headers []*os.File
	for i := range 64 {
		w, err := recording.CreateRing(filepath.Join(dir, recording.NextRingName(pid, ticks, i+2)), recording.MainCapacity, recording.Declaration{Producer: recording.ProducerMain, PID: pid})
		if err != nil {
			b.Fatal(err)
		}
		w.Abandon()
		f, err := os.OpenFile(filepath.Join(dir, recording.NextRingName(pid, ticks, i+2)), os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		headers = append(headers, f)
	}
	y, err := OpenYard(dir, YardOptions{Sink: func(Folder) (recording.Sink, bool) { return recording.NewMemory(recording.Manifest{}), true }})
	if err != nil {
		b.Fatal(err)
	}
	defer y.Close()
	now, head := uint64(1), uint64(0)
	for b.Loop() {
		b.StopTimer()
		head += 1 << 20
		for _, f := range headers {
			claim(b, f, head)
		}
		b.StartTimer()
		now += 2 * second
		if err := y.Poll(now); err != nil {
			b.Fatal(err)
		}
	}
}

// claim makes a ring say that so many records were written.
func claim(t testing.TB, f *os.File, head uint64) {
	var b [8]byte
	for i := range b {
		b[i] = byte(head >> (8 * i))
	}
	if _, err := f.WriteAt(b[:], 24); err != nil {
		t.Fatal(err)
	}
}
