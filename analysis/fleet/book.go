package fleet

import (
	"cmp"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// owner is whose time a book counts.
type owner struct {
	source         Source
	namespace, job string
}

// book is what is known of a job in one window. Times are seconds.
type book struct {
	owner
	isEmulated bool
	gpus       map[string]float64 // for how long it had each
	hooked     map[string]bool    // GPUs of ranks; "" of one whose GPU is not known
	holders    []string
	grade      stat.Grade // the worst of its GPUs

	allocated      float64
	booked         float64 // of it: by an agent, which keeps accounts
	accounts       map[string]float64
	bound, covered float64
	active, read   float64            // SM activity, and for how long it was read
	training, wait map[string]float64 // by rank

	idle             float64 // by an exporter: next to nothing ran
	idleRead         float64 // for how long an exporter told
	resident, looked float64 // some kernel was there, and for how long that was told; where SM activity is not

	unasked float64 // of allocated, where it is a sum of others': of those of which nobody knows whether they waited

	withheld string  // why none of its numbers is shown; "" where they are
	cut      []Share // parts, where they are sums of others'
}

func newBook(o owner) *book {
	return &book{owner: o, gpus: map[string]float64{}, hooked: map[string]bool{}, accounts: map[string]float64{}, training: map[string]float64{}, wait: map[string]float64{}}
}

// The accounts that are lost to waiting and to idle allocation.
var (
	waitingAccounts = []string{ledger.ExposedWait.String(), ledger.EpochStart.String()}
	idleAccounts    = []string{ledger.IdleHeld.String(), ledger.NotHeld.String()}
	workAccounts    = []string{ledger.Compute.String(), ledger.Collective.String()}
)

func (b *book) sum(accounts []string) (seconds float64) {
	for _, a := range accounts {
		seconds += b.accounts[a]
	}
	return seconds
}

// use puts the numbers of a book into hours.
func (b *book) use(price analysis.Ratio) Use {
	u := Use{Accounts: map[string]float64{}, Allocated: hours(b.allocated)}
	if b.withheld != "" || b.allocated <= 0 {
		why := b.withheld
		if why == "" {
			why = "nothing was allocated"
		}
		return lost(u, why)
	}
	for name, s := range b.accounts {
		u.Accounts[name] = s / 3600
	}
	u.Waiting, u.AtMost = b.waiting(price)
	u.Idle = b.idling(price)
	u.Lost = together(u.Waiting, u.Idle, price)
	u.Unasked = hours(b.nobodyAsked())
	u.Partial = u.Lost.Hours.IsKnown() && (u.Unasked.Or(0) > 0 || !u.Idle.Hours.IsKnown())
	b.activity(&u, price)
	u.Wait = b.waitShare()
	u.Covered = share(b.covered, b.booked, "an exporter does not tell")
	u.Parts = b.parts()
	return u
}

// lost is a use of which nothing is known.
func lost(u Use, why string) Use {
	none := unit.None[float64](why)
	u.Allocated, u.Unasked, u.SMActive, u.SMRead, u.Resident, u.Wait, u.Covered = none, none, none, none, none, none, none
	gone := Amount{Hours: none, Money: none}
	u.Waiting, u.AtMost, u.Idle, u.Lost, u.Working = gone, gone, gone, gone, gone
	return u
}

// noHook is why a wait is not known. It would read 0: counters of accounts are there from the start.
const noHook = "no hook of datawait looked at its training"

// nobodyAsked is how much of the allocated time is of GPUs on which no hook looked. Where the GPU of a rank is not known, all of the
// job's may have been looked at.
func (b *book) nobodyAsked() (seconds float64) {
	switch {
	case b.source == Any:
		return b.unasked
	case !b.asked():
		return b.allocated
	case len(b.hooked) == 0 || b.hooked[""]:
		return 0
	}
	for gpu, s := range b.gpus {
		if !b.hooked[gpu] {
			seconds += s
		}
	}
	return seconds
}

// asked reports whether a hook told of waiting.
func (b *book) asked() bool { return len(b.hooked) > 0 || len(b.training) > 0 }

func (b *book) waiting(price analysis.Ratio) (certain, atMost Amount) {
	if !b.asked() {
		why := noHook
		switch {
		case b.source == Exporter:
			why = "an exporter does not know whether a job waits"
		case b.job == SharedJob:
			why = "a GPU that several share waits for none of them alone"
		case b.source == Any:
			why = "no hook of datawait looked at any training"
		}
		gone := amount(unit.None[float64](why), price, "")
		return gone, gone
	}
	s := b.sum(waitingAccounts)
	// A device's clock tells of exposed waits: one source, so B at best.
	return amount(hours(s), price, stat.Worse(stat.GradeB, b.grade)), amount(hours(s+b.bound), price, stat.GradeC)
}

func (b *book) idling(price analysis.Ratio) Amount {
	grade := stat.Worse(stat.GradeB, b.grade)
	if b.idleRead > 0 {
		grade = stat.GradeC // of values up to 30 s old, once a minute
	}
	if len(b.accounts) == 0 && b.idleRead <= 0 {
		return amount(unit.None[float64]("no counter of activity was served"), price, "")
	}
	return amount(hours(b.sum(idleAccounts)+b.idle), price, grade)
}

// together adds what is known of two amounts; unknown is not 0, but what is known is lost all the same.
func together(a, b Amount, price analysis.Ratio) Amount {
	x, knownA := a.Hours.Get()
	y, knownB := b.Hours.Get()
	switch {
	case knownA && knownB:
		return amount(unit.Some(x+y), price, stat.Worse(a.Grade, b.Grade))
	case knownA:
		return a
	}
	return b
}

// activity tells how much of the time the GPUs worked.
func (b *book) activity(u *Use, price analysis.Ratio) {
	u.SMActive = share(b.active, b.read, "SM activity was not read")
	u.SMRead = share(b.read, b.allocated, "nothing was allocated")
	u.Resident = share(b.resident, b.looked, "no counter of it was served")
	u.Working = amount(hours(b.active), price, b.grade)
	if b.read <= 0 {
		u.Working = amount(unit.None[float64]("SM activity was not read"), price, "")
	}
}

// share divides. A little more than all is the noise of counters that are read at different moments.
func share(part, whole float64, why string) analysis.Ratio {
	if !(whole > 0) || math.IsInf(whole, 0) || math.IsNaN(part) {
		return unit.None[float64](why)
	}
	return unit.Some(min(1, part/whole))
}

func (b *book) waitShare() analysis.Ratio {
	var wait, training float64
	for rank, s := range b.training {
		training += s
		wait += b.wait[rank]
	}
	return share(wait, training, noHook)
}

// The parts of allocated time.
const (
	PartCompute = "compute" // a kernel resident, by the books
	PartActive  = "active"  // SM activity times time, of an exporter
	PartWaiting = "waiting"
	PartBound   = "wait_bound" // of what is not known: may be waiting
	PartIdle    = "idle"
	PartOther   = "other"
	PartUnknown = "unknown"
)

// parts cuts the allocated time into what adds up to it.
func (b *book) parts() []Share {
	if b.cut != nil {
		return b.cut
	}
	var cut []Share
	left := b.allocated
	add := func(id string, seconds float64) {
		if seconds = min(seconds, left); seconds <= 0 {
			return
		}
		if n := len(cut); n > 0 && cut[n-1].ID == id {
			cut[n-1].Hours += seconds / 3600
		} else {
			cut = append(cut, Share{id, seconds / 3600})
		}
		left -= seconds
	}
	if len(b.accounts) == 0 {
		add(PartActive, b.active)
		add(PartIdle, b.idle)
		add(PartUnknown, left)
		return cut
	}
	unattributed := b.accounts[ledger.Unattributed.String()]
	bound := min(b.bound, unattributed)
	known := slices.Concat(workAccounts, waitingAccounts, idleAccounts, []string{ledger.Unattributed.String()})
	other := 0.0
	for _, name := range sortedNames(b.accounts) {
		if !slices.Contains(known, name) {
			other += b.accounts[name]
		}
	}
	add(PartCompute, b.sum(workAccounts))
	add(PartWaiting, b.sum(waitingAccounts))
	add(PartBound, bound)
	add(PartIdle, b.sum(idleAccounts))
	add(PartOther, other)
	add(PartUnknown, unattributed-bound)
	if len(cut) == 0 {
		return nil
	}
	// What is left comes from counters that are read at different moments.
	if largest := slices.MaxFunc(cut, func(a, b Share) int { return cmp.Compare(a.Hours, b.Hours) }); left <= noise*b.allocated {
		cut[slices.Index(cut, largest)].Hours += left / 3600
	} else {
		add(PartUnknown, left)
	}
	return cut
}

// noise is the share of the allocated time up to which what is left over is no part of its own.
const noise = 0.005
