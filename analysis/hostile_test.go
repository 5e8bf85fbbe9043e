package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// values are what a damaged or hostile recording may hold where a time is expected.
func value(r *rand.Rand) uint64 {
	switch r.IntN(12) {
	case 0:
		return 0
	case 1:
		return recording.Unknown64
	case 2:
		return 1 << (32 + r.IntN(32))
	case 3:
		return r.Uint64()
	}
	return 1e9 + r.Uint64N(20e9)
}

func number(r *rand.Rand) uint32 {
	switch r.IntN(10) {
	case 0:
		return recording.Unknown32
	case 1:
		return r.Uint32()
	}
	return r.Uint32N(6)
}

func share32(r *rand.Rand) float32 {
	switch r.IntN(12) {
	case 0:
		return float32(math.NaN())
	case 1:
		return float32(math.Inf(1 - 2*r.IntN(2)))
	case 2:
		return (r.Float32() - 0.5) * 1e38
	}
	return r.Float32()
}

// pair returns a begin and, mostly, a later end.
func times(r *rand.Rand) (begin, end uint64) {
	begin = value(r)
	if r.IntN(8) == 0 {
		return begin, value(r)
	}
	return begin, begin + r.Uint64N(1e9)
}

// anyRecord returns a record of any kind for any stream.
func anyRecord(r *rand.Rand) recording.Record {
	begin, end := times(r)
	flags, ref := uint8(0), uint16(number(r))
	if r.IntN(3) == 0 {
		flags = uint8(r.Uint32())
	}
	switch recording.Kinds[r.IntN(len(recording.Kinds))] {
	case recording.KindFetch:
		return recording.Fetch{Flags: flags, Ref: ref, Enter: begin, Exit: end, Batch: number(r), Epoch: number(r), Step: number(r),
			Thread: number(r), CPU: value(r), Ready: number(r), Block: number(r)}.Encode()
	case recording.KindStep:
		return recording.Step{Flags: flags, Ref: ref, Begin: begin, End: end, Step: number(r), Thread: number(r), CPU: value(r)}.Encode()
	case recording.KindIterator:
		return recording.Iterator{Flags: flags, Ref: ref, Begin: begin, End: end, Epoch: number(r), Workers: number(r), Length: number(r), Prefetch: number(r)}.Encode()
	case recording.KindMark:
		return recording.Mark{Flags: flags, Ref: uint16(r.IntN(10)), Begin: begin, End: end, Value: value(r)}.Encode()
	case recording.KindBlock:
		return recording.Block{Flags: flags, Ref: uint16(r.IntN(6)), Begin: begin, End: end, Block: number(r), FirstStep: number(r), Steps: number(r),
			Fetches: number(r), Wait: value(r), Reason: number(r), Ready: number(r)}.Encode()
	case recording.KindExposed:
		return recording.Exposed{Flags: flags, Ref: ref, T: begin, Idle: value(r), Span: value(r), Fetch: number(r), Loader: number(r)}.Encode()
	case recording.KindSolo:
		return recording.Solo{Ref: ref, T: begin, Batch: number(r), Epoch: number(r)}.Encode()
	case recording.KindWorker:
		return recording.Worker{Ref: ref, T: begin, PID: number(r), Worker: number(r), Epoch: number(r)}.Encode()
	case recording.KindBatch:
		return recording.Batch{Flags: flags, Ref: ref, Received: value(r), Begin: begin, End: end, Sent: value(r), Batch: number(r), Resumes: number(r),
			Samples: number(r), Worker: number(r)}.Encode()
	case recording.KindCost:
		return recording.Cost{Flags: flags, Ref: ref, CPU: value(r), ProcessCPU: value(r), RunQueue: value(r), Collate: value(r), Bytes: value(r),
			Files: number(r), Requests: number(r), Tensors: number(r)}.Encode()
	case recording.KindIO:
		return recording.IO{Ref: ref, RChar: value(r), ReadBytes: value(r), Syscalls: value(r), Voluntary: value(r), Involuntary: value(r)}.Encode()
	case recording.KindRead:
		return recording.Read{Flags: flags, Ref: ref, T: begin, Hash: r.Uint32(), Halvings: number(r)}.Encode()
	case recording.KindStack:
		return recording.Stack{Ref: ref, T: begin, On: value(r), Off: value(r), Unclear: value(r), Call: number(r), Samples: number(r)}.Encode()
	case recording.KindTransform:
		return recording.Transform{Ref: ref, T: begin, Calls: value(r), NS: value(r), Transform: number(r)}.Encode()
	case recording.KindSampler:
		return recording.Sampler{Ref: ref, T: begin, Looks: value(r), Samples: value(r), Outside: value(r), CPU: value(r), Wall: value(r)}.Encode()
	case recording.KindGPU:
		return recording.GPU{Flags: flags, Ref: ref, Begin: begin, End: end, SM: share32(r), Resident: share32(r), Tensor: share32(r), DRAM: share32(r),
			Copy: share32(r), Power: share32(r), SMClock: share32(r), Memory: share32(r)}.Encode()
	case recording.KindGPUPipes:
		return recording.GPUPipes{Flags: flags, Ref: ref, Begin: begin, End: end, Engine: share32(r), Occupancy: share32(r), FP32: share32(r), PCIeIn: share32(r),
			PCIeOut: share32(r), NVLinkIn: share32(r), NVLinkOut: share32(r)}.Encode()
	case recording.KindGPUState:
		return recording.GPUState{Ref: ref, Begin: begin, End: end, Power: share32(r), PowerLimit: share32(r), SMClock: share32(r), SMClockMax: share32(r),
			MemoryUsed: share32(r), MemoryAll: share32(r), Reasons: number(r), Link: r.Uint32(), Resident: share32(r)}.Encode()
	case recording.KindGPUProcess:
		return recording.GPUProcess{Ref: ref, Begin: begin, End: end, PID: number(r), Memory: value(r)}.Encode()
	case recording.KindGPUEvent:
		return recording.GPUEvent{Ref: ref, T: begin, Code: number(r), Value: value(r)}.Encode()
	case recording.KindMachine:
		return recording.Machine{Begin: begin, End: end, Busy: share32(r), Cores: share32(r), Foreign: share32(r), MemoryAvailable: value(r)}.Encode()
	case recording.KindProcess:
		return recording.Process{Ref: ref, Begin: begin, End: end, PID: number(r), CPU: share32(r), RunQueue: share32(r), RSS: value(r), Received: share32(r)}.Encode()
	case recording.KindLimits:
		return recording.Limits{Begin: begin, End: end, Quota: share32(r), CPUSet: share32(r), Usable: share32(r), Throttled: share32(r), MemoryLimit: value(r)}.Encode()
	case recording.KindPressure:
		return recording.Pressure{Begin: begin, End: end, CPUSome: share32(r), IOSome: share32(r)}.Encode()
	case recording.KindDisk:
		return recording.Device{Ref: ref, Begin: begin, End: end, Read: share32(r), Busy: share32(r)}.Encode(recording.KindDisk)
	case recording.KindNet:
		return recording.Device{Ref: ref, Begin: begin, End: end, Read: share32(r)}.Encode(recording.KindNet)
	}
	return recording.Source{Ref: ref, Begin: begin, End: end, Lateness: value(r), CPU: share32(r), RSS: value(r)}.Encode()
}

// hostile makes a recording in which everything may be wrong.
func hostile(seed uint64) *recording.Memory {
	r := rand.New(rand.NewPCG(seed, 3))
	manifest := recording.Manifest{StartedMonotonic: value(r)}
	if r.IntN(2) == 0 {
		manifest.Format = recording.Format
		manifest.EndedMonotonic = unit.Some(value(r))
	}
	m := recording.NewMemory(manifest)
	producers := []recording.Producer{recording.ProducerMain, recording.ProducerWorker, recording.ProducerAgent, "stranger"}
	var ids []recording.StreamID
	for range 1 + r.IntN(6) {
		n, uuid := r.IntN(3)-1, fmt.Sprint("GPU-", r.IntN(3))
		d := recording.Declaration{Producer: producers[r.IntN(len(producers))], PID: r.IntN(6), PPID: r.IntN(6), Parent: r.IntN(6), Threads: &n}
		if r.IntN(2) == 0 {
			d.Rank, d.LocalRank, d.GPUUUID = &n, &n, &uuid
		}
		id, _ := m.Declare(d)
		ids = append(ids, id)
		m.AddNote(id, recording.ClockNote{Monotonic: value(r), Realtime: value(r)})
		m.AddNote(id, recording.GPUNote{GPU: uint16(r.IntN(3)), UUID: uuid, Grade: "A", Interval: unit.Some(value(r))})
		m.AddNote(id, recording.AllocationNote{T: value(r), Since: value(r), UUID: uuid, By: []string{"processes", "slurm"}[r.IntN(2)], Holders: make([]recording.Holder, r.IntN(3))})
		m.AddNote(id, recording.LoaderNote{Loader: uint16(number(r)), Kind: "watch", Length: unit.Some(int64(value(r)))})
		m.AddNote(id, recording.SumsNote{Loader: uint16(number(r)), Fetches: unit.Some(value(r)), WaitNS: unit.Some(value(r)), BetweenNS: unit.Some(value(r))})
	}
	for range r.IntN(400) {
		m.Add(ids[r.IntN(len(ids))], anyRecord(r))
	}
	return m
}

// damaged plays a small sound job and spoils it: records lost, doubled, moved, and with bytes changed.
func damaged(seed uint64) *recording.Memory {
	r := rand.New(rand.NewPCG(seed, 4))
	job := simulate.Job{Ranks: 1 + r.IntN(2), Epochs: 1 + r.IntN(3), Steps: 5 + r.IntN(40), Workers: r.IntN(4), Prefetch: 2, Build: constant(r.Int64N(50 * ms)),
		Compute: r.Int64N(20 * ms), Depth: r.IntN(5), Host: ms, SM: 0.5, Window: 50 * ms, Validation: r.IntN(3), Checkpoint: r.Int64N(2) * 30 * ms}
	if r.IntN(2) == 0 {
		job.Plan, job.Warm, job.BlockSteps, job.Steps = plan(2), 20, 10, 400
	}
	sound, _ := job.Play()
	m := recording.NewMemory(sound.Manifest())
	for _, s := range sound.Streams() {
		id, _ := m.Declare(s.Declaration)
		for _, n := range s.Notes.GPUs {
			m.AddNote(id, n)
		}
	}
	odds := 1 + r.IntN(200)
	var late []recording.Record
	_ = sound.Scan(func(id recording.StreamID, records []recording.Record) error {
		for _, rec := range records {
			if r.IntN(odds) > 0 {
				m.Add(id, rec)
				continue
			}
			switch r.IntN(4) {
			case 0: // lost
			case 1:
				m.Add(id, rec, rec)
			case 2:
				late = append(late, rec)
			case 3:
				rec[8+r.IntN(52)] ^= byte(1 << r.IntN(8))
				m.Add(id, rec)
			}
		}
		return nil
	})
	for _, rec := range late {
		m.Add(recording.StreamID(1+r.IntN(len(m.Streams()))), rec)
	}
	return m
}

// TestHostile: whatever a recording holds, Run neither panics nor says what cannot be.
func TestHostile(t *testing.T) {
	for seed := range uint64(600) {
		checkHostile(t, seed)
	}
}

func FuzzRun(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkHostile(t, seed) })
}

func checkHostile(t *testing.T, seed uint64) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("seed %d", seed)
			panic(p)
		}
	}()
	nodes := []recording.Reader{hostile(seed)}
	switch seed % 4 {
	case 0:
		nodes = append(nodes, hostile(seed+1e9))
	case 1, 2:
		nodes[0] = damaged(seed)
	}
	result, err := Run(nodes, Options{})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if problem := impossible(result); problem != "" {
		t.Fatalf("seed %d: %s", seed, problem)
	}
}

// impossible names the first number in a result that cannot be.
func impossible(r *Result) string {
	if _, err := json.Marshal(r); err != nil {
		return err.Error()
	}
	for _, g := range r.GPUs {
		sum := int64(0)
		for name, ns := range g.AccountsNS {
			if ns < 0 {
				return fmt.Sprintf("account %s is %d", name, ns)
			}
			sum += ns
		}
		if sum != g.AllocatedNS {
			return fmt.Sprintf("accounts sum to %d of %d", sum, g.AllocatedNS)
		}
		for name, ratio := range map[string]Ratio{"coverage": g.Coverage, "untrusted": g.Untrusted, "held": g.HeldRatio, "resident": g.ResidentRatio, "tensor": g.TensorActiveRatio} {
			if v := ratio.Or(0); v < 0 || v > 1 {
				return fmt.Sprintf("%s ratio is %v", name, v)
			}
		}
		for _, rung := range g.Ladder {
			hours := float64(g.AllocatedNS) / 3600e9
			if v := rung.Ratio.Or(0); v < 0 || v > 1 || rung.Coverage.Or(0) < 0 || rung.Coverage.Or(0) > 1 || rung.GPUHours.Or(0) > hours*(1+1e-9) {
				return fmt.Sprintf("rung %+v of %v hours", rung, hours)
			}
		}
		if e, ok := g.SMActiveRatio.Get(); ok && !(0 <= e.Low && e.Low <= e.Value && e.Value <= e.High && e.High <= 1) {
			return fmt.Sprintf("SM activity is %+v", e)
		}
	}
	parts := 0.0
	for _, p := range r.Step.Anatomy {
		parts += p.Seconds
	}
	if mean, ok := r.Step.MeanSeconds.Get(); ok && math.Abs(parts-mean.Value) > 1e-6*mean.Value {
		return fmt.Sprintf("the parts of a step are %v s of %v s", parts, mean.Value)
	}
	for name, e := range map[string]Est{"data wait": r.Step.DataWaitShare, "exposed wait": r.Step.ExposedWaitShare} {
		if v, ok := e.Get(); ok && !(v.Low <= v.Value && v.Value <= v.High && 0 <= v.Value && v.Value <= 1) {
			return fmt.Sprintf("%s share is %+v", name, v)
		}
	}
	return ""
}
