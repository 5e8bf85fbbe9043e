package load

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// Load reads every node's recording once and returns the job. It fails only where a reader fails: on a failing disk.
func Load(nodes []recording.Reader) (*Job, error) {
	l := loading{job: &Job{}}
	for i, reader := range nodes {
		if err := l.node(i, reader); err != nil {
			return nil, fmt.Errorf("reading the recording of %s: %w", cmp.Or(reader.Manifest().Host, "a node"), err)
		}
	}
	l.finish()
	return l.job, nil
}

// loading is a Job in the making.
type loading struct {
	job     *Job
	workers []*workerStream
}

// A fold takes the records of one stream.
type fold interface{ take([]recording.Record) }

func (l *loading) node(index int, reader recording.Reader) error {
	node := &Node{Index: index, Manifest: reader.Manifest(), Begin: Unknown, End: Unknown, Drift: Unknown, Usage: newHost()}
	l.job.Nodes = append(l.job.Nodes, node)
	streams := reader.Streams()
	folds := l.folds(node, streams)
	bad, err := recording.Scan(reader, func(id recording.StreamID, records []recording.Record) error {
		l.job.Records += uint64(len(records))
		if int(id) < len(folds) && folds[id] != nil {
			folds[id].take(records)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.job.Damage = l.job.Damage.Add(reader.Damage()).Add(bad)
	for _, r := range l.job.Others {
		if r.Node == node && r.Begin != Unknown {
			node.seen(r.Begin, r.End)
		}
	}
	node.name(streams)
	node.observed()
	node.clocks(streams)
	return nil
}

// folds returns what takes each stream's records, by stream number. Two streams of one ring (an agent that was restarted) are
// one rank.
func (l *loading) folds(node *Node, streams []recording.Stream) []fold {
	var folds []fold
	mains := map[identity]*Rank{}
	for i := range streams {
		s := &streams[i]
		for int(s.ID) >= len(folds) && int(s.ID) <= len(streams)+maxGap {
			folds = append(folds, nil)
		}
		if int(s.ID) >= len(folds) {
			continue
		}
		switch s.Declaration.Producer {
		case recording.ProducerMain:
			key := identity{processOf(s.Declaration), s.Declaration.Opened}
			r := mains[key]
			if r == nil {
				r = newRank(node, s.Declaration, len(l.job.Others))
				mains[key] = r
				l.job.Others = append(l.job.Others, r) // until it proves to be a rank
			}
			r.note(&s.Notes)
			folds[s.ID] = &mainFold{rank: r, bad: &l.job.Bad, builds: map[uint16]*Builds{}, lost: Unknown}
		case recording.ProducerWorker:
			w := newWorkerStream(node, s, len(l.workers), &l.job.Bad)
			l.workers = append(l.workers, w)
			folds[s.ID] = w
		case recording.ProducerAgent:
			folds[s.ID] = newAgentFold(node, s, &l.job.Bad)
		}
	}
	return folds
}

// maxGap is how far stream numbers may run ahead of the streams that exist.
const maxGap = 1 << 16

// lifetime tells two processes of one host apart, even where a pid was used twice.
type lifetime struct {
	boot  string
	pid   int
	start uint64
}

func processOf(d recording.Declaration) lifetime { return lifetime{d.BootID, d.PID, d.StartTicks} }

// identity names what one process did as one program. A script that replaces itself (execve) stays the same process, and
// begins to count anew.
type identity struct {
	lifetime
	opened uint64
}

// name chooses the node's host name: the agent's word first, a container's last.
func (n *Node) name(streams []recording.Stream) {
	n.Host = n.Manifest.Host
	for _, want := range []recording.Producer{recording.ProducerAgent, recording.ProducerMain, recording.ProducerWorker} {
		for i := range streams {
			if n.Host == "" && streams[i].Declaration.Producer == want {
				n.Host = streams[i].Declaration.Host
			}
		}
	}
}

// observed widens what the records show by what the agent said of its own run.
func (n *Node) observed() {
	if begin := n.Manifest.StartedMonotonic; begin > 0 && begin < latest {
		n.seen(int64(begin), int64(begin))
	}
	if end, ok := n.Manifest.EndedMonotonic.Get(); ok && end < latest && n.Begin != Unknown && int64(end) > n.Begin {
		n.seen(n.Begin, int64(end))
	}
}

// finish puts everything in order and joins what belongs together.
func (l *loading) finish() {
	for _, node := range l.job.Nodes {
		for _, g := range node.GPUs {
			g.Windows = disjoint(g.Windows, &l.job.Bad)
		}
	}
	for _, r := range l.job.Others {
		r.order()
	}
	l.joinWorkers()
	l.ranks()
	l.job.common()
}

// ranks parts the main processes that train from those that merely exist.
func (l *loading) ranks() {
	var ranks, others []*Rank
	for _, r := range l.job.Others {
		if len(r.Fetches) == 0 && len(r.Steps) == 0 && !r.summed() || forkOf(r, l.job.Others) {
			others = append(others, r)
			continue
		}
		ranks = append(ranks, r)
	}
	number(ranks)
	slices.SortStableFunc(ranks, func(a, b *Rank) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.restart(), b.restart()), cmp.Compare(a.Begin, b.Begin))
	})
	replacements(ranks)
	l.job.Ranks, l.job.Others = ranks, others
}

// number gives ranks that declare none the first numbers that are free; a process keeps its number as another program.
func number(ranks []*Rank) {
	used, known := map[int]bool{}, map[lifetime]int{}
	for _, r := range ranks {
		if d := r.Declaration.Rank; d != nil {
			r.Number = *d
			used[*d] = true
		}
	}
	next := 0
	for _, r := range ranks {
		if r.Declaration.Rank != nil {
			continue
		}
		process := processOf(r.Declaration)
		if n, ok := known[process]; ok && r.Declaration.Opened != 0 {
			r.Number = n
			continue
		}
		for used[next] {
			next++
		}
		r.Number = next
		used[next], known[process] = true, next
	}
}

// replacements finds what processes were before they became another program.
func replacements(ranks []*Rank) {
	for i, r := range ranks {
		for _, later := range ranks[i+1:] {
			if r.Declaration.Opened != 0 && later.Declaration.Opened > r.Declaration.Opened && processOf(later.Declaration) == processOf(r.Declaration) {
				r.Replaced = true
			}
		}
	}
}

func (r *Rank) restart() int {
	if r.Declaration.Restart != nil {
		return *r.Declaration.Restart
	}
	return 0
}

// forkOf reports whether r is a child of another rank that inherited its number: it trains nothing of its own.
func forkOf(r *Rank, all []*Rank) bool {
	if len(r.Steps) > 0 {
		return false
	}
	for _, p := range all {
		if p != r && p.Node == r.Node && p.Declaration.PID == r.Declaration.PPID && len(p.Steps) > 0 && p.Begin <= r.Begin && r.Begin <= p.End {
			return true
		}
	}
	return false
}
