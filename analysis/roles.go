package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// roles finds the loaders that feed training. A fetch with autograd off belongs to validation; a loader trains if steps are
// made between the fetches of one of its iterators. Where no loader shows that (one batch per epoch; no optimizer was seen), the
// busiest one trains.
func (r *run) roles() {
	r.eachRank((*rank).role)
}

// usage is how one loader was used by a rank.
type usage struct {
	delivered int
	spans     bool // steps were made within one iterator
	epoch     uint32
	step      int
}

func (k *rank) role() {
	grad := k.usages(func(f *load.Fetch) bool { return !f.Is(recording.FetchNoGrad) })
	if len(grad) == 0 { // a job without gradients, such as inference, or one that fetches with autograd off
		grad = k.usages(func(*load.Fetch) bool { return true })
		k.noGrad = true
	}
	k.byFetch = len(k.Steps) < 2
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
	k.trains = loaderSet{}
	busiest, most := uint16(0), 0
	for _, id := range sorted(grad) {
		u := grad[id]
		if u.delivered > most {
			busiest, most = id, u.delivered
		}
		if u.spans || k.byFetch {
			k.trains.add(id)
		}
	}
	k.primary = busiest
	if k.trains.ids == nil && most > 0 {
		k.trains.add(busiest)
	}
}

func (k *rank) usages(which func(*load.Fetch) bool) map[uint16]*usage {
	all := map[uint16]*usage{}
	step := 0 // counted here: what a fetch says counts fetches until the first optimizer step
	for i := range k.Fetches {
		f := &k.Fetches[i]
		for step < len(k.Steps) && k.Steps[step].End <= f.Enter {
			step++
		}
		if f.Upstream() || f.Test() || !f.Delivered() || !which(f) {
			continue
		}
		u := all[f.Loader]
		if u == nil {
			u = &usage{epoch: f.Epoch, step: step}
			all[f.Loader] = u
		}
		u.delivered++
		if f.Epoch == u.epoch && step != u.step {
			u.spans = true
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
	return !f.Upstream() && !k.noGrad && f.Is(recording.FetchNoGrad)
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
