package load

import (
	"github.com/datawait/datawait/probe/recording"
)

// agentFold takes the records of the agent of a node.
type agentFold struct {
	source
	node  *Node
	index int
	gpus  map[uint16]*GPU // by the stream's own number
	bad   uint64
}

func newAgentFold(node *Node, s *recording.Stream, from source) agentFold {
	a := agentFold{source: from, node: node, index: len(node.Notes), gpus: map[uint16]*GPU{}}
	for _, note := range s.Notes.GPUs {
		a.gpus[note.GPU] = node.gpu(note)
	}
	node.Notes = append(node.Notes, s.Notes)
	return a
}

// fold reads the agents of a node, one after another.
func fold(agents []agentFold) (all Reading, err error) {
	for i := range agents {
		a := &agents[i]
		reading, err := a.read(a.take)
		if err != nil {
			return all, err
		}
		reading.Bad = a.bad
		all.Add(reading)
		a.node.feeds = append(a.node.feeds, feed{a.source, a.gpus})
	}
	return all, nil
}

func (a *agentFold) take(records []recording.Record) {
	for i := range records {
		rec := &records[i]
		ok := true
		switch rec.Kind() {
		case recording.KindGPU:
			ok = a.gpu(rec)
		case recording.KindGPUState:
			ok = a.state(rec)
		case recording.KindGPUProcess:
			ok = a.process(rec)
		case recording.KindGPUEvent:
			ok = a.event(rec)
		case recording.KindMachine:
			v := rec.Machine()
			ok = a.add(&a.node.Usage.Machine, v.Begin, v.End, v.Busy, v.IOWait, v.Steal, v.Runnable, reading(v.MemoryAvailable), v.Cores, v.Foreign)
		case recording.KindProcess:
			ok = a.use(rec)
		case recording.KindLimits:
			v := rec.Limits()
			ok = a.add(&a.node.Usage.Limits, v.Begin, v.End, v.Quota, v.CPUSet, v.Usable, v.Throttled, reading(v.ThrottledTime), reading(v.MemoryLimit))
		case recording.KindPressure:
			v := rec.Pressure()
			ok = a.add(&a.node.Usage.Pressure, v.Begin, v.End, v.CPUSome, v.IOSome, v.IOFull, v.MemorySome, v.MemoryFull)
		case recording.KindDisk, recording.KindNet:
			devices := a.node.Usage.Disks
			if rec.Kind() == recording.KindNet {
				devices = a.node.Usage.Nets
			}
			v := rec.Device()
			ok = a.add(byRef(devices, v.Ref, deviceFields), v.Begin, v.End, v.Read, v.Ops, v.Busy, v.ReadWait)
		case recording.KindSource:
			v := rec.Source()
			ok = a.add(byRef(a.node.Usage.Sources, Source{a.index, v.Ref}, sourceFields), v.Begin, v.End, seconds(v.Lateness), reading32(v.Samples), reading32(v.Errors), v.CPU, reading(v.RSS))
		}
		if !ok {
			a.bad++
		}
	}
}

// use keeps what one process used: of a job with many workers most of what an agent writes.
func (a *agentFold) use(rec *recording.Record) bool {
	var v recording.Process
	rec.ProcessInto(&v)
	p := a.node.Usage.process(v.PID, recording.ProcessRole(v.Ref))
	return a.add(&p.Usage, v.Begin, v.End, v.CPU, v.System, v.RunQueue, reading(v.RSS), reading32(v.Threads), v.Read, v.Received)
}

// add keeps one reading, weighted by its seconds.
func (a *agentFold) add(s *Series, begin, end uint64, v ...float32) bool {
	b, e, ok := span(begin, end)
	if !ok || b == e {
		return false
	}
	a.node.seen(b, e)
	fields := s.open(b, e, float64(e-b)/1e9)
	for i := range v {
		fields[i] = amount(v[i])
	}
	return true
}
