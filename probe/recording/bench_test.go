package recording

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// bigRecording writes n records in rounds of perRound for each of 33 streams, flushing every round as a live agent does.
func bigRecording(t testing.TB, n, perRound int) Reader {
	t.Helper()
	dir, w := create(t, Options{})
	ids := make([]StreamID, 33)
	for i := range ids {
		ids[i], _ = w.Declare(Declaration{Producer: ProducerWorker, PID: i + 1})
	}
	block := make([]Record, perRound)
	for written := 0; written < n; {
		for _, id := range ids {
			for i := range block {
				block[i] = Fetch{Enter: uint64(written + i), Exit: uint64(written + i + 1)}.Encode()
				block[i].SetSeq(uint32(written + i + 1))
			}
			if err := w.Records(id, block); err != nil {
				t.Fatal(err)
			}
			written += perRound
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(Ending{}); err != nil {
		t.Fatal(err)
	}
	return openOne(t, dir)
}

// BenchmarkScan reads and checks every record; BenchmarkScanDecode also decodes it into its struct and uses it.
func BenchmarkScan(b *testing.B) {
	benchmarkScan(b, func(r *Record) uint64 { return uint64(r.Seq()) })
}

func BenchmarkScanDecode(b *testing.B) {
	benchmarkScan(b, func(r *Record) uint64 { f := r.Fetch(); return f.Exit - f.Enter })
}

func benchmarkScan(b *testing.B, use func(*Record) uint64) {
	for _, perFrame := range []int{16, 128, 512} {
		b.Run(fmt.Sprintf("frame=%d", perFrame), func(b *testing.B) {
			r := bigRecording(b, 1<<20, perFrame)
			b.ReportAllocs()
			b.ResetTimer()
			records, sum, before := 0, uint64(0), cpuSeconds()
			for range b.N {
				Scan(r, func(_ StreamID, block []Record) error {
					records += len(block)
					for i := range block {
						sum += use(&block[i])
					}
					return nil
				})
			}
			b.ReportMetric(float64(records)/(cpuSeconds()-before)/1e6, "Mrecords/cpu-s")
		})
	}
}

// cpuSeconds is what this process took of a core so far: the machine may be shared.
func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func BenchmarkOpen(b *testing.B) {
	for _, perFrame := range []int{16, 512} {
		b.Run(fmt.Sprintf("frame=%d", perFrame), func(b *testing.B) {
			dir, w := create(b, Options{})
			id, _ := w.Declare(Declaration{Producer: ProducerMain})
			for range (1 << 20) / perFrame {
				w.Records(id, make([]Record, perFrame))
				w.Flush()
			}
			w.Close(Ending{})
			b.ResetTimer()
			for range b.N {
				if _, err := Open(dir); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*(1<<20)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	_, w := create(b, Options{createSegment: func(string) (segmentFile, error) { return os.OpenFile(os.DevNull, os.O_WRONLY, 0) }})
	id, _ := w.Declare(Declaration{Producer: ProducerMain})
	block := make([]Record, 16)
	b.ReportAllocs()
	for range b.N {
		if err := w.Records(id, block); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*16)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}

func BenchmarkRingDrain(b *testing.B) {
	path, w := newRing(b, WorkerCapacity)
	writeNumbers(b, w, 1, WorkerCapacity)
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for range b.N {
		r, err := OpenRing(path)
		if err != nil {
			b.Fatal(err)
		}
		finish(r)(func(records []Record) error { n += len(records); return nil })
		r.Close()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}
