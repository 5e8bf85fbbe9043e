package load

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/datawait/datawait/analysis/internal/together"
	"github.com/datawait/datawait/probe/recording"
)

// Survey goes through every node's recording and returns the job, its ranks not loaded yet. It fails only where a reader fails: on a
// failing disk.
func Survey(nodes []recording.Reader) (*Job, error) {
	s := &survey{job: &Job{}}
	for i, reader := range nodes {
		s.node(i, reader)
	}
	if err := s.read(); err != nil {
		return nil, err
	}
	s.finish()
	return s.job, s.leftovers()
}

// survey is a Job in the making.
type survey struct {
	job     *Job
	mains   []*Rank // processes that may prove to be ranks
	workers []*workerStream
	tasks   []func() (Reading, error)
	longest []func() (Reading, error) // of the tasks: those begun last would be waited for alone
	room    windowRoom
}

// source is one stream of a recording.
type source struct {
	reader recording.Reader
	id     recording.StreamID
}

// read visits all records of the stream and counts them.
func (s source) read(take func([]recording.Record)) (r Reading, err error) {
	r.Damage, err = s.reader.Stream(s.id, func(records []recording.Record) error {
		r.Records += uint64(len(records))
		take(records)
		return nil
	})
	return r, s.explain(err)
}

// beside is read, and reads with it the workers of the process, which built together about so many batches: what they wrote lies beside
// what it wrote.
func (s source) beside(take func([]recording.Record), workers []*workerStream, batches int, room *Room) (r Reading, err error) {
	ids, takes := []recording.StreamID{s.id}, map[recording.StreamID]func([]recording.Record){s.id: take}
	for _, w := range workers {
		w.begin(batches/len(workers), room)
		ids = append(ids, w.id)
		takes[w.id] = w.take
	}
	r.Damage, err = recording.Together(s.reader, ids, func(id recording.StreamID, records []recording.Record) error {
		r.Records += uint64(len(records))
		takes[id](records)
		return nil
	})
	for _, w := range workers {
		r.Bad += w.bad
	}
	return r, s.explain(err)
}

// explain says whose recording cannot be read.
func (s source) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading the recording of %s: %w", cmp.Or(s.reader.Manifest().Host, "a node"), err)
}

// node looks at the streams of a node. Two streams of one ring (an agent that was restarted) are one rank.
func (s *survey) node(index int, reader recording.Reader) {
	node := &Node{Index: index, Manifest: reader.Manifest(), Begin: Unknown, End: Unknown, Drift: Unknown, Usage: newHost(), streams: reader.Streams(),
		room: &s.room}
	s.job.Nodes = append(s.job.Nodes, node)
	s.job.Reading.Damage = s.job.Reading.Damage.Add(reader.Damage())
	mains := map[identity]*Rank{}
	var agents []agentFold
	for i := range node.streams {
		stream := &node.streams[i]
		from := source{reader, stream.ID}
		switch stream.Declaration.Producer {
		case recording.ProducerMain:
			key := identity{processOf(stream.Declaration), stream.Declaration.Opened}
			r := mains[key]
			if r == nil {
				r = newRank(node, stream.Declaration)
				mains[key] = r
				s.mains = append(s.mains, r)
				s.tasks = append(s.tasks, r.survey)
			}
			r.note(&stream.Notes)
			r.sources = append(r.sources, from)
		case recording.ProducerWorker:
			w := newWorkerStream(node, stream, from, len(s.workers))
			s.workers = append(s.workers, w)
			s.job.WorkerErrors = append(s.job.WorkerErrors, stream.Notes.HookErrors...)
			s.tasks = append(s.tasks, w.survey)
		case recording.ProducerAgent:
			agents = append(agents, newAgentFold(node, stream, from))
		default:
			s.tasks = append(s.tasks, func() (Reading, error) { return from.read(func([]recording.Record) {}) })
		}
	}
	s.longest = append(s.longest, func() (Reading, error) { return fold(agents) })
}

// read does what is to be done, several streams at once.
func (s *survey) read() error {
	tasks := slices.Concat(s.longest, s.tasks)
	readings, errs := make([]Reading, len(tasks)), make([]error, len(tasks))
	together.Do(len(tasks), atOnce, func(i int) { readings[i], errs[i] = tasks[i]() })
	for i := range tasks {
		if errs[i] != nil {
			return errs[i]
		}
		s.job.Reading.Add(readings[i])
	}
	return nil
}

// atOnce is how many streams are surveyed at a time.
const atOnce = 8

// finish joins what belongs together.
func (s *survey) finish() {
	for _, r := range s.mains {
		if r.Begin != Unknown {
			r.Node.seen(r.Begin, r.End)
		}
	}
	for _, node := range s.job.Nodes {
		node.name()
		node.observed()
		node.clocks()
		node.settle()
	}
	s.joinWorkers()
	s.job.ranks(s.mains)
	s.job.common()
}

// leftovers reads what no rank will: other processes, and workers that nobody claims. Their records count.
func (s *survey) leftovers() error {
	var room Room
	for _, r := range s.job.Others {
		reading, err := r.Load(&room)
		if err != nil {
			return err
		}
		s.job.Reading.Add(reading)
		r.Unload(&room)
	}
	for _, w := range s.workers {
		if w.owner != nil {
			continue
		}
		reading, err := w.load(&room)
		if err != nil {
			return err
		}
		reading.Orphans = uint64(len(w.builds.Batches))
		s.job.Reading.Add(reading)
		room.giveBack(w.builds)
	}
	return nil
}

// name chooses the node's host name: the agent's word first, a container's last.
func (n *Node) name() {
	n.Host = n.Manifest.Host
	for _, want := range []recording.Producer{recording.ProducerAgent, recording.ProducerMain, recording.ProducerWorker} {
		for i := range n.streams {
			if n.Host == "" && n.streams[i].Declaration.Producer == want {
				n.Host = n.streams[i].Declaration.Host
			}
		}
	}
}

// observed widens what the records show by what the agent said of its own run.
func (n *Node) observed() {
	if begin := n.Manifest.StartedMonotonic; begin > 0 && begin < recording.Latest {
		n.seen(int64(begin), int64(begin))
	}
	if end, ok := n.Manifest.EndedMonotonic.Get(); ok && end < recording.Latest && n.Begin != Unknown && int64(end) > n.Begin {
		n.seen(n.Begin, int64(end))
	}
}
