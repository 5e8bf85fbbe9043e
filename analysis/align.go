package analysis

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/replay"
	"github.com/datawait/datawait/analysis/stat"
)

// rank is a training process and what the passes found out about it.
type rank struct {
	*load.Rank
	device *device // nil if it runs on no GPU that was watched
	joined stat.Grade

	validating loaderSet            // that feed validation
	trains     loaderSet            // that feed training
	evaluates  loaderSet            // of those that feed validation: they feed nothing else, with autograd on
	byFetch    bool                 // no optimizer step was seen: a step is one fetch
	validated  map[loaderEpoch]bool // iterators that served validation
	primary    uint16               // with byFetch: the loader whose fetches are counted
	made       int                  // steps
	without    int                  // steps before which no loader that trains delivered, nor the cached-data test in its place
	beside     bool                 // batches for training are read on another thread, see readBeside
	noGrad     bool                 // it never fetches with autograd on: such fetches are training, not validation
	live       spans                // when it trained as it always does
	begun      int64                // live training: first sign to last
	ended      int64
	scratch    *scratch // while it is studied
	steps      int
	steady     steadyState
	waits      *cumulative       // made when first asked for
	seen       []seen            // per block of the cached-data test
	slowest    *load.Loader      // that trains; nil without
	crew       *crew             // of the slowest
	start      loader.EpochStart // of the slowest
	cold       cold
	stream     loader.Stream // of the slowest
	grown      []swell       // its workers that did
	usage      loader.Device
	film       film
	played     replay.Tape // of the slowest
	drawn      drawing
}

// device is a watched GPU and the ranks that use it.
type device struct {
	*load.GPU
	ranks   []*rank
	grade   stat.Grade
	doubt   int64 // a lag that is as likely
	lag     int64 // its counters run this much late; they are shifted back already
	books   ledger.Totals
	ladder  ladder
	length  float64 // ns, Σ of its windows
	counted int
	row     GPU
	drawn   []Window // as a picture shows it
	unmixed unmixed
	holding holding
	pipes   [pipeFields]mean // over the allocated time
}

// align finds the GPU of every rank: by UUID, else by the list of processes, else as the only device there is, else in the order of local
// ranks.
func (r *run) align() {
	for _, node := range r.job.Nodes {
		devices := make([]*device, 0, len(node.GPUs))
		for _, g := range node.GPUs {
			devices = append(devices, &device{GPU: g, grade: gradeOf(g)})
		}
		ranks := r.of(node)
		for _, k := range ranks {
			k.device, k.joined = match(k, ranks, devices)
			if k.device != nil {
				k.device.ranks = append(k.device.ranks, k)
				k.device.grade = stat.Worse(k.device.grade, k.joined)
			}
		}
		r.devices = append(r.devices, r.ours(node, devices, ranks)...)
		r.ranked = append(r.ranked, ranks...)
	}
	slices.SortStableFunc(r.ranked, func(a, b *rank) int { return cmp.Compare(a.Number, b.Number) })
	r.observed()
}

func (r *run) of(node *load.Node) (ranks []*rank) {
	for _, k := range r.job.Ranks {
		if k.Node == node {
			ranks = append(ranks, &rank{Rank: k, joined: stat.GradeA})
		}
	}
	return ranks
}

// match returns the device of a rank and how sure that is: C is a guess, that nothing speaks against. A rank that says which GPU it uses is
// on that one, or on none that was watched.
func match(k *rank, ranks []*rank, devices []*device) (*device, stat.Grade) {
	uuid := k.GPU()
	if d := only(devices, func(d *device) bool { return ledger.SameGPU(uuid, d.Note.UUID) }); d != nil {
		return d, stat.GradeA
	}
	if d := only(devices, func(d *device) bool { return ledger.SameGPU(uuid, d.Note.Parent) }); d != nil { // CUDA may name the GPU of a slice
		return d, stat.GradeA
	}
	if d := only(devices, func(d *device) bool { return d.usedBy([]*rank{k}) }); d != nil {
		return d, stat.GradeA
	}
	if len(devices) == 1 && emulated(devices[0]) {
		return devices[0], stat.GradeA
	}
	if uuid != "" {
		return nil, stat.GradeC
	}
	if len(devices) == 1 && len(ranks) == 1 && !devices[0].listsOthers(ranks, load.Unknown) {
		return devices[0], stat.GradeA
	}
	place := k.Number
	if local := k.Declaration.LocalRank; local != nil {
		place = *local
	} else if len(ranks) > len(devices) {
		return nil, stat.GradeC
	}
	if place < 0 || place >= len(devices) || devices[place].withOthers(ranks) {
		return nil, stat.GradeC
	}
	return devices[place], stat.GradeC
}

// guessed reports a rank whose GPU nobody told.
func (k *rank) guessed() bool { return k.device != nil && k.joined == stat.GradeC }

// only returns the device of which something holds, nil if it holds of none or of several.
func only(devices []*device, holds func(*device) bool) (one *device) {
	for _, d := range devices {
		if !holds(d) {
			continue
		}
		if one != nil {
			return nil
		}
		one = d
	}
	return one
}

func emulated(d *device) bool {
	return d.Note.Emulated || d.Emulated
}

func gradeOf(g *load.GPU) stat.Grade {
	switch stat.Grade(g.Note.Grade) {
	case stat.GradeA:
		return stat.GradeA
	case stat.GradeC:
		return stat.GradeC
	}
	return stat.GradeB
}

// observed finds the first and last moment of the job on the common clock.
func (r *run) observed() {
	first := true
	for _, n := range r.job.Nodes {
		if n.Begin == load.Unknown {
			continue
		}
		begin, end := n.Begin+n.Shift, n.End+n.Shift
		if first {
			r.begin, r.end, first = begin, end, false
		}
		r.begin, r.end = min(r.begin, begin), max(r.end, end)
	}
}
