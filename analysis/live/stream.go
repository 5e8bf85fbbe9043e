package live

import (
	"encoding/json"
	"math"

	"github.com/datawait/datawait/probe/recording"
)

// stream is one process that tells: a training process, a worker, or the agent.
type stream struct {
	node        *Node
	declaration recording.Declaration
	identity    Identity
	rank        *rank  // of a training process, and of a worker once its parent is known
	group       *group // of a training process
	training    *training
	builds      builds
	gpu         string               // UUID of the device it trains on, "" if not known
	guessed     bool                 // that is only because there is no other
	gpus        map[uint16]*device   // of an agent
	early       []recording.Record   // told before the GPU was known
	counted     uint32               // Seq of the last record that was, by this agent or an earlier one
	seen        uint64               // ns, time of the last record or of the declaration
	ended       uint64               // ns, as a note told; 0 = it did not
	carried     bool                 // an earlier agent counted some of it
	header      recording.RingHeader // the most of each count that its headers showed, and its hook as it was seen last
}

// most records of a process are kept until it is known on which GPU it trains: some minutes of fetches and steps.
const mostEarly = 1 << 13

// mostEarlyOfAll is how many are kept of all processes of the machine: 16 MiB.
const mostEarlyOfAll = 1 << 18

func (n *Node) open(by *spool, d recording.Declaration) *stream {
	s := &stream{node: n, declaration: d, identity: by.identity, seen: d.Opened}
	switch {
	case by.agent:
		s.gpus = map[uint16]*device{}
	case d.Producer == recording.ProducerMain:
		s.train()
	case d.Producer == recording.ProducerWorker:
		s.adopt()
	}
	if c, ok := n.carried[s.key()]; ok {
		s.counted, s.carried = c.Seq, true
		s.header = recording.RingHeader{OwnTime: c.OwnTime, OwnLooks: c.OwnLooks, HookErrors: c.HookErrors}
		delete(n.carried, s.key())
	}
	return s
}

// train gives a training process its job and its row.
func (s *stream) train() {
	n, d := s.node, s.declaration
	s.training = newTraining()
	if c, ok := n.carried[s.key()]; ok {
		s.group = n.resumed(c.Tenant, s.identity, d)
	} else {
		s.group = n.group(s.identity, d)
	}
	n.joined(s.group)
	s.rank = n.rank(s.group.tenant, d)
	s.rank.processes++
	if t := s.group.tenant; t.Pod != "" {
		n.called[holderName{namespace: t.Namespace, pod: t.Pod}] = t
	}
	if d.GPUUUID != nil {
		s.gpu = n.device(*d.GPUUUID).uuid()
	}
}

// adopt finds the training process that a worker builds for.
func (s *stream) adopt() {
	for _, o := range s.node.streams {
		if o.training != nil && o.declaration.PID == s.declaration.Parent && o.declaration.Namespace == s.declaration.Namespace &&
			o.identity.Folder == s.identity.Folder {
			s.rank, s.training = o.rank, o.training
			s.rank.Workers.Running++
			s.builds.rank = s.rank
			return
		}
	}
}

// main reports a training process.
func (s *stream) main() bool { return s.group != nil }

// worker reports a process that builds for a known training process.
func (s *stream) worker() bool { return s.group == nil && s.rank != nil }

// take takes records, without those that an earlier agent has counted.
func (s *stream) take(records []recording.Record) {
	for len(records) > 0 && int32(records[0].Seq()-s.counted) <= 0 {
		records = records[1:]
	}
	if len(records) == 0 {
		return
	}
	told := records[len(records)-1].Seq() - s.counted
	s.counted += told
	switch {
	case s.main():
		s.rank.Hook.count(len(records), told)
		for i := range records {
			s.fold(&records[i])
		}
		s.tell(records)
	case s.declaration.Producer == recording.ProducerWorker:
		if s.rank == nil {
			s.adopt()
		}
		if s.rank == nil {
			return
		}
		s.rank.Hook.count(len(records), told)
		for i := range records {
			s.build(&records[i])
		}
	case s.gpus != nil:
		for i := range records {
			s.watch(&records[i])
		}
	}
}

// trainedBefore reports whether it is known to have trained before a time.
func (s *stream) trainedBefore(t uint64) bool {
	return s.carried || s.training.began != 0 && s.training.began < t
}

// count counts records that were taken, of so many that were written: the others were overwritten before, or torn.
func (h *Hook) count(taken int, written uint32) {
	more(&h.Records, uint64(taken))
	more(&h.Lost, uint64(written)-min(uint64(taken), uint64(written)))
}

// tell passes records on to the books of the GPU that the process trains on.
func (s *stream) tell(records []recording.Record) {
	d := s.node.devices[s.gpu]
	if d == nil || len(d.episodes) == 0 || s.rank == nil {
		if room := min(mostEarly-len(s.early), mostEarlyOfAll-s.node.early); room > 0 {
			s.early = append(s.early, records[:min(room, len(records))]...)
			s.node.early += min(room, len(records))
		}
		return
	}
	for _, e := range d.episodes {
		e.records(s, records)
	}
}

// flush tells what was kept, once there is a book to tell it.
func (s *stream) flush() {
	if d := s.node.devices[s.gpu]; len(s.early) > 0 && d != nil && len(d.episodes) > 0 {
		early := s.early
		s.forgetEarly()
		s.tell(early)
	}
}

func (s *stream) forgetEarly() {
	s.node.early -= len(s.early)
	s.early = nil
}

func (s *stream) note(raw json.RawMessage) {
	var told recording.Notes
	told.Add(raw)
	for _, e := range told.Ended {
		s.ended = e.T
	}
	if s.main() {
		for _, d := range told.Devices {
			if uuid, ok := d.GPUUUID.Get(); ok && uuid != "" && (s.gpu == "" || s.guessed) {
				s.moveTo(s.node.device(uuid))
			}
		}
		return
	}
	if s.gpus == nil {
		return
	}
	for _, g := range told.GPUs {
		if d := s.node.named(g); d != nil {
			s.gpus[g.GPU] = d
		}
	}
	for _, a := range told.Allocations {
		s.node.allocate(a)
	}
}

// moveTo is told by the process itself on which GPU it trains.
func (s *stream) moveTo(d *device) {
	if old := s.node.devices[s.gpu]; old != nil && old != d {
		old.left, old.turned = s.node.now, true
	}
	s.gpu, s.guessed = d.uuid(), false
}

// end takes leave of a process.
func (s *stream) end() {
	switch {
	case s.main():
		s.handOff(math.MaxUint64)
		at := s.ended // which a drain tells after the last Tick: it may be later than that
		if at == 0 || at > s.node.now+ahead {
			at = min(max(s.seen, s.node.options.Begin), s.node.now)
		}
		s.node.left(s.group)
		s.rank.processes--
		s.group.ended, s.rank.ended = max(s.group.ended, at), max(s.rank.ended, at)
		s.flush()
		s.forgetEarly()
		if d := s.node.devices[s.gpu]; d != nil {
			d.left = max(d.left, at)
			d.turned = true
		}
	case s.worker():
		s.rank.Workers.Running--
		s.training.leave(s.declaration.PID)
	}
}
