package live

import (
	"github.com/datawait/datawait/probe/recording"
)

// builds is what is remembered of a process that builds batches, from one record to the next.
type builds struct {
	rank *rank
	last uint64 // ns, wall time of the batch that was told last
	all  uint64 // of those since the last Cost
	n    uint64 // how many those are
}

// build counts one record of a process that builds batches.
func (s *stream) build(r *recording.Record) {
	w := &s.rank.Workers
	switch r.Kind() {
	case recording.KindBatch:
		if v := r.Batch(); v.Begin <= v.End && v.End < recording.Latest {
			s.seen = max(s.seen, v.End)
			w.Batches++
			more(&w.Build, v.End-v.Begin)
			s.builds.last = v.End - v.Begin
			more(&s.builds.all, s.builds.last)
			s.builds.n++
			s.sent(v)
		}
	case recording.KindCost:
		s.cost(r.Cost())
	case recording.KindIO:
		if v := r.IO(); v.RChar != recording.Unknown64 {
			more(&w.ReadBytes, v.RChar)
			w.ReadSeen++
		}
	}
}

// cost counts what the last batch cost, or all since the last Cost. Off-CPU is what is left of the wall time, waiting for helper
// threads included.
func (s *stream) cost(v recording.Cost) {
	w := &s.rank.Workers
	wall, n := s.builds.last, uint64(1)
	if v.Flags&recording.CostSeveral != 0 {
		wall, n = s.builds.all, s.builds.n
	}
	s.builds.last, s.builds.all, s.builds.n = 0, 0, 0
	if wall == 0 {
		return // of a fetch in the training process: SPEC §2, COST without BATCH
	}
	cpu, queue := v.CPU < recording.Latest, v.RunQueue < recording.Latest
	if cpu {
		more(&w.CPU, min(v.CPU, wall))
		more(&w.CPUSeen, wall)
	}
	if queue {
		more(&w.RunQueue, min(v.RunQueue, wall))
		more(&w.QueueSeen, wall)
	}
	if cpu && queue {
		more(&w.OffCPU, wall-min(wall, v.CPU+v.RunQueue))
	}
	if v.Files != recording.Unknown32 && v.Requests != recording.Unknown32 {
		w.Files += uint64(v.Files)
		w.Requests += uint64(v.Requests)
		w.IOSeen += n
	}
}

// sent remembers when a batch was sent, until the training process fetches it.
func (s *stream) sent(v recording.Batch) {
	t := s.training
	c, ok := t.claims[s.declaration.PID]
	if !ok || v.Sent >= recording.Latest || v.Sent < v.End {
		return
	}
	if len(t.sent) >= mostSent { // of iterators that were left
		clear(t.sent)
	}
	t.sent[batchKey{iteration{c.loader, c.epoch + v.Resumes}, v.Batch}] = v.Sent
}

// leave forgets a worker that has ended.
func (t *training) leave(pid int) { delete(t.claims, pid) }
