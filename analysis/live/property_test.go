package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// world is a machine on which jobs come and go, GPUs change hands and the agent is killed, all at random. What a process wrote into its ring
// stays there, so an agent that begins reads it again.
type world struct {
	*testing.T
	*rand.Rand
	now   float64 // s
	node  *machine
	procs []*simulated
	pid   int
	gpus  []string
	last  map[string]float64 // counters as they were shown last
	gone  map[string]float64 // ns allocated of each GPU, in rows that are no more
	begun float64
}

// simulated is a process, its ring, and how much of that the agent that runs now has read.
type simulated struct {
	identity recording.Declaration
	folder   string
	ring     []recording.Record
	read     int
	at       float64 // s, up to which it has trained
	ended    float64 // s; 0 = it runs
	step     uint32
	epoch    uint32
	out      recording.Sink
	id       recording.StreamID
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), now: 10, begun: 10, gpus: []string{"GPU-a", "GPU-b", "MIG-c"}, last: map[string]float64{}, gone: map[string]float64{}, pid: 100}
	w.node = newMachine(t, 10)
	w.name()
	return w
}

func (w *world) name() {
	for i, uuid := range w.gpus {
		w.node.gpu(uint16(i), uuid)
	}
}

func (w *world) chance(p float64) bool { return w.Float64() < p }

func (w *world) start() {
	w.pid++
	gpu := w.gpus[w.IntN(len(w.gpus))]
	d := recording.Declaration{Producer: recording.ProducerMain, PID: w.pid, PPID: 50 + w.IntN(3), StartTicks: uint64(w.pid), Opened: at(w.now - w.Float64()),
		Argv: []string{fmt.Sprintf("job%d.py", w.IntN(3))}}
	if w.chance(0.8) {
		d.GPUUUID = &gpu
	}
	if w.chance(0.5) {
		rank, size := w.IntN(3)-1, 2
		d.Rank, d.WorldSize = &rank, &size
	}
	w.procs = append(w.procs, &simulated{identity: d, folder: fmt.Sprint("f", w.IntN(2)), at: w.now})
}

func (p *simulated) append(r recording.Record) {
	r.SetSeq(uint32(len(p.ring) + 1))
	p.ring = append(p.ring, r)
}

// train writes what the process did until now.
func (w *world) train(p *simulated) {
	for p.at < w.now && p.ended == 0 {
		wait, compute := w.Float64()*0.4, w.Float64()*0.6
		f := recording.Fetch{Enter: at(p.at), Exit: at(p.at + wait), Batch: p.step, Epoch: p.epoch, CPU: recording.Unknown64}
		switch x := w.Float64(); {
		case x < 0.05:
			p.epoch++
			p.append(recording.Iterator{Begin: at(p.at), End: at(p.at + 0.01), Epoch: p.epoch}.Encode())
			f.Flags, f.Epoch, f.Enter = recording.FetchFirst, p.epoch, at(p.at+0.01)
			f.Exit = max(f.Enter, f.Exit)
		case x < 0.1:
			f.Flags = recording.FetchNoGrad
		case x < 0.12: // late: it was written long ago
			f.Enter, f.Exit = at(max(p.at-20, 0)), at(max(p.at-20, 0)+wait)
		case x < 0.13: // of a clock that lies
			f.Enter, f.Exit = at(p.at), at(p.at+5000)
		case x < 0.16:
			p.append(recording.Mark{Ref: uint16(recording.MarkCheckpoint), Begin: at(p.at), End: at(p.at + wait)}.Encode())
		}
		p.append(f.Encode())
		fetch := uint32(len(p.ring))
		if p.step++; w.chance(0.9) {
			p.append(recording.Step{Begin: recording.Unknown64, End: at(p.at + wait + compute), Step: p.step}.Encode())
		}
		if w.chance(0.5) {
			p.append(recording.Exposed{T: at(p.at + wait), Idle: at(wait * w.Float64()), Span: recording.Unknown64, Fetch: fetch}.Encode())
		}
		p.at += wait + compute
	}
}

// read tells the agent what is new in a ring, and some of it twice.
func (w *world) read(p *simulated) {
	if p.out == nil {
		p.out = w.node.Spool(Identity{Folder: p.folder})
		var err error
		p.id, err = p.out.Declare(p.identity)
		w.node.ok(err)
	}
	from := max(p.read-w.IntN(4), 0)
	w.node.ok(p.out.Records(p.id, p.ring[from:]))
	if w.chance(0.2) {
		w.node.ok(p.out.Records(p.id, p.ring[from:]))
	}
	p.read = len(p.ring)
	looks := w.Uint64N(100)
	w.node.See(p.id, recording.RingHeader{OwnLooks: looks, OwnTime: 50 * looks})
}

// windows tells what the counters showed in the last seconds, not in order, some of it twice, and some not at all.
func (w *world) windows() {
	for i := range w.gpus {
		for _, k := range w.Perm(3) {
			if begin := w.now - 3 + float64(k); begin >= 0 && w.chance(0.8) {
				flags := []uint8{0, recording.GPUHeldKnown, recording.GPUHeldKnown | recording.GPUHeld, recording.GPUUntrusted}[w.IntN(4)]
				w.node.windows(uint16(i), begin, begin+1, w.Float32(), w.Float32(), flags)
			}
		}
	}
}

func (w *world) allocate() {
	by := []string{recording.AllocatedByKubernetes, recording.AllocatedByProcesses, recording.AllocatedBySlurm}[w.IntN(3)]
	var holders []recording.Holder
	for range w.IntN(3) {
		h := recording.Holder{Job: fmt.Sprintf("job%d.py", w.IntN(3))}
		if by == recording.AllocatedByKubernetes {
			h = recording.Holder{Namespace: "team", Pod: fmt.Sprint("pod", w.IntN(2))}
		}
		if len(w.procs) > 0 && by == recording.AllocatedByProcesses {
			h = recording.Holder{PIDs: []int{w.procs[w.IntN(len(w.procs))].identity.PID}}
		}
		holders = append(holders, h)
	}
	if holders == nil && w.chance(0.5) {
		holders = []recording.Holder{}
	}
	w.node.ok(w.node.agent.Note(recording.AllocationNote{T: at(w.now), UUID: w.gpus[w.IntN(len(w.gpus))], By: by, Holders: holders}))
}

// restart kills the agent; another goes on some time later. What it must not take back is what was shown before its State was kept.
func (w *world) restart() {
	kept, err := json.Marshal(w.node.State("boot"))
	w.node.ok(err)
	w.now += w.Float64() * 10
	var s State
	w.node.ok(json.Unmarshal(kept, &s))
	w.node = newMachine(w.T, w.now)
	if err := w.node.Restore(&s, "boot"); err != nil {
		w.Fatalf("an agent's own state is refused: %v\n%s", err, kept)
	}
	for _, p := range w.procs {
		p.out, p.read = nil, 0
	}
	w.name()
	w.check()
}

func (w *world) end(p *simulated) {
	w.read(p)
	if w.chance(0.7) {
		w.node.ok(p.out.Note(p.id, recording.EncodeNote(recording.EndedNote{T: at(p.ended)})))
	}
	p.out.(recording.Ender).End(p.id)
}

// second lets a second pass, or some more.
func (w *world) second() {
	w.now += 0.5 + w.Float64()
	if w.chance(0.15) && len(w.procs) < 6 {
		w.start()
	}
	if w.chance(0.1) {
		w.allocate()
	}
	var living []*simulated
	for _, p := range w.procs {
		w.train(p)
		if p.ended == 0 && w.chance(0.03) {
			p.ended = w.now
		}
		switch {
		case p.ended != 0 && w.chance(0.5):
			w.end(p)
			continue
		case w.chance(0.8):
			w.read(p)
		}
		living = append(living, p)
	}
	w.procs = living
	w.windows()
	w.node.Tick(at(w.now))
	w.check()
	if w.chance(0.02) {
		w.restart()
	}
}

// counters lists the numbers in a row that may only grow.
func counters(of map[string]float64, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Rank" && f.Name != "WorldSize" && f.Name != "Running" && f.Name != "UsableCores" && f.Name != "Late" {
				counters(of, name+" "+f.Name, v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			counters(of, fmt.Sprint(name, " ", i), v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			counters(of, fmt.Sprint(name, " ", k), v.MapIndex(k))
		}
	case reflect.Uint64:
		of[name] = float64(v.Uint())
	case reflect.Int64:
		of[name] = float64(v.Int())
	case reflect.Float64:
		of[name] = v.Float()
	}
}

func (w *world) check() {
	w.Helper()
	s := w.node.Snapshot()
	now := map[string]float64{}
	allocated := map[string]float64{}
	seen := map[string]float64{}
	for _, x := range s.Tenancies {
		if sum(x.Books) != x.Books.Allocated || x.Books.Covered > x.Books.Allocated {
			w.Errorf("at %v: accounts of %v on %s come to %d, allocated %d, covered %d", w.now, x.Tenant, x.GPU, sum(x.Books), x.Books.Allocated, x.Books.Covered)
		}
		counters(now, fmt.Sprintf("%v on %s", x.Tenant, x.GPU), reflect.ValueOf(x))
		allocated[x.GPU] += float64(x.Books.Allocated)
		seen[x.GPU] += x.Activity.SMSeen + x.Activity.Untrusted
	}
	for _, x := range s.Ranks {
		if x.Exposed > x.WaitClocked || x.WaitClocked > x.Wait || x.Wait > x.Training || x.HandOff > x.HandOffSeen || x.HandOffSeen > x.Wait {
			w.Errorf("at %v: a part of %+v is more than the whole", w.now, x)
		}
		counters(now, fmt.Sprintf("rank %v %v", x.Tenant, x.Rank), reflect.ValueOf(x))
	}
	for _, x := range s.Jobs {
		counters(now, fmt.Sprintf("job %v", x.Tenant), reflect.ValueOf(x))
	}
	for name, before := range w.last {
		after, ok := now[name]
		if ok && after < before-1e-9*before { // a float may round otherwise
			w.Errorf("at %v: %s fell from %v to %v", w.now, name, before, after)
		}
	}
	for _, uuid := range w.gpus {
		for name, before := range w.last {
			if _, ok := now[name]; !ok && isAllocated(name, uuid) {
				w.gone[uuid] += before
			}
		}
		if all, elapsed := (allocated[uuid]+w.gone[uuid])/1e9, w.now-w.begun+1e-6; all > elapsed || seen[uuid] > elapsed {
			w.Errorf("at %v: %v s of %s are booked and %v s of counters, %v s have passed", w.now, all, uuid, seen[uuid], elapsed)
		}
	}
	w.last = now
	if w.Failed() {
		w.FailNow()
	}
}

func isAllocated(name, uuid string) bool {
	suffix := " on " + uuid + " Books Allocated"
	return len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix
}

// What holds whatever happens.
func TestNoCounterGoesBackAndNoSecondIsBookedTwice(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 300 {
				w.second()
			}
			for _, p := range w.procs {
				p.ended = w.now
				w.end(p)
			}
			w.nothing()
		})
	}
}

// nothing is left of what ended long ago.
func (w *world) nothing() {
	for _, uuid := range w.gpus {
		for _, by := range []string{recording.AllocatedByKubernetes, recording.AllocatedByProcesses, recording.AllocatedBySlurm} {
			w.node.ok(w.node.agent.Note(recording.AllocationNote{T: at(w.now), UUID: uuid, By: by, Holders: []recording.Holder{}}))
		}
	}
	w.node.Tick(at(w.now + 1))
	w.node.Tick(at(w.now + 10))
	w.node.Tick(at(w.now + 500)) // Forget is 100 s
	n := w.node.Node
	left := map[string]int{"streams besides the agent's": len(n.streams) - 1, "devices": len(n.devices), "ranks": len(n.ranks), "groups": len(n.groups),
		"tenancies": len(n.tenancies), "jobs": len(n.jobs), "called": len(n.called), "carried": len(n.carried), "living": len(n.living), "free": len(n.free), "early": n.early}
	for what, count := range left {
		if count != 0 {
			w.Errorf("%d %s are left", count, what)
		}
	}
}
