// Package ledger books where every nanosecond of an allocated GPU went.
//
// A [Page] is the account book of one GPU. It takes what the training process did ([Span]) and what the GPU's counters showed
// ([Window]), in any order, and settles them up to a time. Integers are booked, each nanosecond once, so the accounts of a page
// sum exactly to the time it was allocated. The same page serves a finished recording and a running job: settling in many
// steps gives what settling once gives.
//
// It refuses to guess: a wait whose exposure no device clock measured, and a window without trustworthy counters, are booked
// [Unattributed]. A GPU is never called idle on counters that contradict themselves.
//
// A [Book] keeps the pages of one node and takes records as they come (it is a recording.Sink).
//
// Read [Account], [State] and [Page] first.
package ledger

// Account is where time is booked.
type Account uint8

// The accounts, with their names in reports (IDS: account names).
const (
	NotHeld      Account = iota // no process has a context on the GPU
	Startup                     // before the first batch was asked for, and the first step's compilation
	EpochStart                  // an iterator being made, and its first batch
	ExposedWait                 // waiting for data with nothing to run, by the device's clock
	Copy                        // copying while nothing computes
	Compute                     // a kernel resident
	Collective                  // not separable from compute yet: no source measures it
	Validation                  // a validation loop
	Checkpoint                  // saving
	Host                        // nothing resident, and the process was not waiting for data
	IdleHeld                    // held, but the job made no step for long
	Unattributed                // not known
	accounts
)

var accountNames = [accounts]string{"not_held", "startup", "epoch_start", "exposed_wait", "copy", "compute", "collective",
	"validation", "checkpoint", "host", "idle_held", "unattributed"}

// Accounts lists every account.
func Accounts() []Account {
	all := make([]Account, accounts)
	for i := range all {
		all[i] = Account(i)
	}
	return all
}

// String returns the account's name in reports.
func (a Account) String() string {
	if a < accounts {
		return accountNames[a]
	}
	return "unknown"
}

// Totals is the balance of a page, in nanoseconds.
type Totals struct {
	NS             [accounts]int64
	Allocated      int64 // Σ NS
	Covered        int64 // of Allocated: seen by trustworthy counters
	WaitUpperBound int64 // of Unattributed: the process waited for data, and no device clock says whether the GPU did
	Late           int64 // entries that came after their time was settled, and were cut or dropped
}

// Add returns the sum of both balances.
func (t Totals) Add(u Totals) Totals {
	for a := range t.NS {
		t.NS[a] += u.NS[a]
	}
	t.Allocated += u.Allocated
	t.Covered += u.Covered
	t.WaitUpperBound += u.WaitUpperBound
	t.Late += u.Late
	return t
}

// Unwatched returns the balance of a process whose fetches were not seen: what is booked as the host's time may be waits for data.
func (t Totals) Unwatched() Totals {
	t.NS[Unattributed] += t.NS[Host]
	t.NS[Host] = 0
	return t
}
