package live

import (
	"encoding/json"
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// told is what the rings and the GPU child of a machine hold after some seconds.
type told struct {
	at   uint64                     // ns
	main map[int][]recording.Record // by rank
	work map[int][]recording.Record // of the one worker that a rank has here: what is counted is the same
	gpus []recording.Record
}

// hours is a job on a machine: so many ranks, each with a GPU and as many steps a second.
type hours struct {
	ranks, pace, seconds int
	told                 []told
	records              int
}

// every is how often rings are looked at, in seconds.
const every = 2

func newHours(ranks, pace, seconds int) *hours {
	h := &hours{ranks: ranks, pace: pace, seconds: seconds}
	nan := float32(math.NaN())
	step := uint64(1e9) / uint64(pace)
	for t := 0; t < seconds; t += every {
		piece := told{at: at(float64(t + every + 1)), main: map[int][]recording.Record{}, work: map[int][]recording.Record{}}
		for rank := range ranks {
			for i := t * pace; i < (t+every)*pace; i++ {
				enter := at(1) + uint64(i)*step
				exit := enter + step*3/10
				piece.work[rank] = append(piece.work[rank],
					recording.Batch{Ref: recording.Unknown16, Received: enter, Begin: enter, End: exit - step/10, Sent: exit - step/10, Batch: uint32(i), Samples: 64}.Encode(),
					recording.Cost{Ref: recording.Unknown16, CPU: step / 10, ProcessCPU: step / 10, Files: 64, Requests: 0}.Encode(),
					recording.IO{Ref: recording.Unknown16, RChar: 1 << 20, ReadBytes: 1 << 20}.Encode())
				piece.main[rank] = append(piece.main[rank],
					recording.Fetch{Enter: enter, Exit: exit, Batch: uint32(i), Step: uint32(i), CPU: recording.Unknown64}.Encode(),
					recording.Step{Begin: recording.Unknown64, End: exit + step/10, Step: uint32(i + 1), CPU: recording.Unknown64}.Encode())
				if i >= behind {
					piece.main[rank] = append(piece.main[rank], recording.Exposed{T: exit, Idle: step / 10, Span: step / 2, Fetch: seqOf(i - behind)}.Encode())
				}
			}
			for s := range every {
				begin := at(float64(t + s + 1))
				piece.gpus = append(piece.gpus, recording.GPU{Ref: uint16(rank), Flags: recording.GPUHeldKnown | recording.GPUHeld, Begin: begin, End: begin + second,
					SM: 0.5, Resident: 0.6, Tensor: 0.2, DRAM: nan, Copy: nan, Power: nan, SMClock: nan, Memory: nan}.Encode())
			}
		}
		h.told = append(h.told, piece)
	}
	h.number()
	return h
}

// behind is how many fetches the device's clock tells late.
const behind = 8

// seqOf is the number of a rank's fetch: two records of each step come before it, and once the clock tells three.
func seqOf(i int) uint32 { return uint32(2*i + max(0, i-behind) + 1) }

// number gives records the numbers that rings give them.
func (h *hours) number() {
	count := func(records []recording.Record, last *uint32) {
		for i := range records {
			*last++
			records[i].SetSeq(*last)
		}
		h.records += len(records)
	}
	mains, works, gpus := make([]uint32, h.ranks), make([]uint32, h.ranks), uint32(0)
	for _, piece := range h.told {
		for rank := range h.ranks {
			count(piece.main[rank], &mains[rank])
			count(piece.work[rank], &works[rank])
		}
		count(piece.gpus, &gpus)
	}
}

// play lets a new book take everything, and settle after each piece.
func (h *hours) play(b testing.TB) *Node {
	n := New(Options{Begin: second, Lag: 2 * second})
	declare := func(s recording.Sink, d recording.Declaration) recording.StreamID {
		id, err := s.Declare(d)
		if err != nil {
			b.Fatal(err)
		}
		return id
	}
	agent, spool := n.Agent(), n.Spool(Identity{Folder: "f"})
	gpus := declare(agent, recording.Declaration{Producer: recording.ProducerAgent, PID: 2})
	mains, works := make([]recording.StreamID, h.ranks), make([]recording.StreamID, h.ranks)
	for rank := range h.ranks {
		uuid := fmt.Sprintf("GPU-%d", rank)
		if err := n.Note(gpus, recording.EncodeNote(recording.GPUNote{GPU: uint16(rank), UUID: uuid, Name: "A100", Source: "dcgm", Grade: "A"})); err != nil {
			b.Fatal(err)
		}
		mains[rank] = declare(spool, recording.Declaration{Producer: recording.ProducerMain, PID: 100 + rank, PPID: 99, StartTicks: 7, Opened: second, Rank: &rank,
			Argv: []string{"train.py"}, GPUUUID: &uuid})
		works[rank] = declare(spool, recording.Declaration{Producer: recording.ProducerWorker, PID: 1000 + rank, StartTicks: 7, Opened: second, Parent: 100 + rank})
	}
	n.Tick(second)
	for _, piece := range h.told {
		for rank := range h.ranks {
			_ = n.Records(mains[rank], piece.main[rank]) // a book refuses nothing
			_ = n.Records(works[rank], piece.work[rank])
		}
		_ = n.Records(gpus, piece.gpus)
		n.Tick(piece.at)
	}
	return n
}

func (h *hours) check(b *testing.B, n *Node) {
	b.Helper()
	s := n.Snapshot()
	if len(s.Ranks) != h.ranks || len(s.Tenancies) != h.ranks {
		b.Fatalf("%d ranks, %d tenancies", len(s.Ranks), len(s.Tenancies))
	}
	for _, r := range s.Ranks {
		if want := uint64(h.seconds * h.pace); r.Steps != want || r.Workers.Batches != want || r.WaitClocked < r.Wait/2 {
			b.Fatalf("%d steps, %d batches and not %d; a clock told of %d ns", r.Steps, r.Workers.Batches, want, r.WaitClocked)
		}
	}
}

// BenchmarkRecords is what the book takes of a record, its ledger and its settling with it. It should take two million a second.
func BenchmarkRecords(b *testing.B) {
	for _, pace := range []int{5, 1000} {
		b.Run(fmt.Sprintf("ranks=8/steps=%d", pace), func(b *testing.B) {
			h := newHours(8, pace, 60)
			var n *Node
			began := cpu(b)
			for b.Loop() {
				n = h.play(b)
			}
			b.ReportMetric(float64(h.records)*float64(b.N)/(cpu(b)-began).Seconds()/1e6, "Mrecords/cpu-s")
			h.check(b, n)
			b.ReportAllocs()
		})
	}
}

// cpu is what this process took of it so far, user and system, its collection of garbage with it.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPublish is what an agent does every few seconds though nothing happens: settle, write down, show.
func BenchmarkPublish(b *testing.B) {
	for _, ranks := range []int{8, 64} {
		n := newHours(ranks, 5, 60).play(b)
		for _, part := range []struct {
			name string
			run  func()
		}{
			{"tick", func() { n.Tick(n.now + 1000) }},
			{"snapshot", func() { n.Snapshot() }},
			{"state", func() { n.State("boot") }},
			{"json", func() {
				if _, err := json.Marshal(n.State("boot")); err != nil {
					b.Fatal(err)
				}
			}},
		} {
			b.Run(fmt.Sprintf("ranks=%d/%s", ranks, part.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					part.run()
				}
			})
		}
	}
}
