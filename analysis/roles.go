package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// usage is how one loader was used by a rank.
type usage struct {
	delivered int
	served    int  // steps before which it delivered
	spans     bool // steps were made within one iterator
	loops     bool // one iterator delivered several batches without a step between them
	between   bool // one of those loops ran after a step
	epoch     uint32
	step      int
}

// role finds the loaders that feed training. A fetch with autograd off belongs to validation; a loader trains if steps are
// made between the fetches of one of its iterators. Where no loader shows that (one batch per epoch; no optimizer was seen), the
// busiest one trains, if the steps can have been made on its batches. A rank that steps and has no such loader gets its batches
// in a way that was not seen.
func (k *rank) role() {
	k.byFetch = len(k.Steps) < 2
	used := k.usages(func(f *load.Fetch) bool { return !f.Is(recording.FetchNoGrad) })
	k.train(used, func(u *usage) bool { return !u.loops || 2*u.served >= len(k.Steps) })
	if k.trains.ids == nil { // a job without gradients, such as inference, or one that fetches with autograd off
		all := k.usages(func(*load.Fetch) bool { return true })
		k.train(all, func(u *usage) bool { return 2*u.served >= len(k.Steps) })
		if k.noGrad = k.trains.ids != nil; k.noGrad {
			used = all
		}
	}
	k.made, k.without = len(k.Steps), k.withoutFetch()
	if k.beside = !k.byFetch && k.readBeside(); k.beside {
		k.trains = loaderSet{}
	}
	k.validate(used)
}

// readBeside reports a loader that another thread reads about as often as training makes a step, while those that training reads itself
// build in processes of their own, so that they are not what it feeds; or as often as training makes steps for which it fetched nothing.
// How long training waits for those batches, at the queue of a prefetching thread, is not seen: the waits that are seen are a part, and a
// part would pass for the whole.
func (k *rank) readBeside() bool {
	if k.trains.ids == nil {
		return false
	}
	read, most := map[uint16]int{}, 0
	const other = recording.FetchNested | recording.FetchNoGrad
	for i := range k.Fetches {
		if f := &k.Fetches[i]; f.Is(recording.FetchOffThread) && !f.Is(other) && f.Delivered() && !f.Test() {
			read[f.Loader]++
			most = max(most, read[f.Loader])
		}
	}
	fed := slices.ContainsFunc(k.trains.ids, func(id uint16) bool {
		l := k.Loader(id)
		return l == nil || l.Note.Arguments.Workers.Or(0) == 0
	})
	if most == 0 || !fed && 2*most >= len(k.Steps) {
		return most > 0
	}
	return 20*k.without >= len(k.Steps) && 2*most >= k.without
}

// withoutFetch returns before how many steps training fetched nothing: they are made on a batch once more, or on one that came some
// other way.
func (k *rank) withoutFetch() int {
	without, next := 0, 0
	for _, step := range k.Steps {
		fetched := false
		for ; next < len(k.Fetches) && k.Fetches[next].Enter < step.End; next++ {
			f := &k.Fetches[next]
			fetched = fetched || k.trains.has(f.Loader) && f.Delivered() && !f.Upstream()
		}
		if !fetched {
			without++
		}
	}
	return without
}

// train finds the loaders that feed training. May says of a loader within whose iterators no step was made whether the steps
// can be its own.
func (k *rank) train(used map[uint16]*usage, may func(*usage) bool) {
	k.trains = loaderSet{}
	busiest, most := uint16(0), 0
	for _, id := range sorted(used) {
		u := used[id]
		if u.delivered > most {
			busiest, most = id, u.delivered
		}
		if u.spans || k.byFetch {
			k.trains.add(id)
		}
	}
	k.primary = busiest
	if k.trains.ids == nil && most > 0 && may(used[busiest]) {
		k.trains.add(busiest)
	}
}

// validate finds the loaders that feed validation: fetches with autograd off, and loops between the steps in which none is made
// (the evaluation of a Hugging Face Trainer fetches with autograd on).
func (k *rank) validate(used map[uint16]*usage) {
	for _, id := range sorted(used) {
		if u := used[id]; u.loops && u.between && !k.byFetch && !k.trains.has(id) {
			k.evaluates.add(id)
		}
	}
	k.validated = map[loaderEpoch]bool{}
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if !k.validates(f) {
			continue
		}
		if !k.validating.has(f.Loader) {
			k.validating.add(f.Loader)
		}
		if f.Is(recording.FetchFirst) {
			k.validated[loaderEpoch{f.Loader, f.Epoch}] = true
		}
	}
}

// unfed reports a rank that makes steps without fetching: its batches come from another rank, or from a loader that is not seen.
func (k *rank) unfed() bool { return !k.byFetch && k.trains.ids == nil }

func (k *rank) usages(which func(*load.Fetch) bool) map[uint16]*usage {
	all := map[uint16]*usage{}
	step := 0 // counted here: what a fetch says counts fetches until the first optimizer step
	var u *usage
	last := uint16(0)
	for i := range k.Fetches {
		f := &k.Fetches[i]
		for step < len(k.Steps) && k.Steps[step].End <= f.Enter {
			step++
		}
		if f.Upstream() || f.Test() || !f.Delivered() || !which(f) {
			continue
		}
		if u == nil || f.Loader != last {
			last = f.Loader
			if u = all[last]; u == nil {
				u = &usage{epoch: f.Epoch, step: -1}
				all[last] = u
			}
		}
		u.delivered++
		goesOn := u.delivered > 1 && f.Epoch == u.epoch && !f.Is(recording.FetchFirst)
		switch {
		case step != u.step:
			u.served++
			u.spans = u.spans || goesOn
		case goesOn:
			u.loops = true
			u.between = u.between || step > 0
		}
		u.epoch, u.step = f.Epoch, step
	}
	return all
}

func sorted[V any](m map[uint16]V) []uint16 {
	keys := make([]uint16, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// training reports a fetch of the training thread for training.
func (k *rank) training(f *load.Fetch) bool {
	return !f.Upstream() && k.trains.has(f.Loader) && (k.noGrad || !f.Is(recording.FetchNoGrad))
}

// validates reports a fetch of the training thread for validation.
func (k *rank) validates(f *load.Fetch) bool {
	return !f.Upstream() && (!k.noGrad && f.Is(recording.FetchNoGrad) || k.evaluates.has(f.Loader))
}

// loaderSet is a set of loader numbers that is asked about once per fetch.
type loaderSet struct {
	few uint64 // numbers below 64
	ids []uint16
}

func (s *loaderSet) add(id uint16) {
	s.ids = append(s.ids, id)
	if id < 64 {
		s.few |= 1 << id
	}
}

func (s *loaderSet) has(id uint16) bool {
	if id < 64 {
		return s.few>>id&1 == 1
	}
	return slices.Contains(s.ids, id)
}
