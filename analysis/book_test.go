package analysis

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
)

// written is when a record reaches its stream.
func written(r *recording.Record) uint64 {
	switch r.Kind() {
	case recording.KindFetch:
		return r.Fetch().Exit
	case recording.KindStep:
		return r.Step().End
	case recording.KindExposed:
		return r.Exposed().T + 100*ms // some fetches late
	case recording.KindIterator:
		return r.Iterator().End
	case recording.KindMark:
		return r.Mark().End
	case recording.KindBlock:
		return r.Block().End
	case recording.KindGPU:
		return r.GPU().End
	}
	return 0
}

// TestBook: a book that takes records as a running job writes them, and settles as time passes, ends with the accounts that
// analysing the finished recording gives, to the nanosecond.
func TestBook(t *testing.T) {
	jobs := map[string]simulate.Job{
		"two ranks": {Ranks: 2, Epochs: 3, Steps: 150, Workers: 2, Prefetch: 2, Build: jittery(50 * ms), Start: 40 * ms, Handoff: ms / 5, Compute: 12 * ms,
			Depth: 2, Host: ms, SM: 0.8, Window: 100 * ms, Validation: 8, Checkpoint: 200 * ms},
		"no device clock": {Epochs: 2, Steps: 150, Workers: 2, Prefetch: 2, Build: jittery(50 * ms), Start: 40 * ms, Compute: 12 * ms, Depth: 2,
			SM: 0.8, Window: 100 * ms, NoEvents: true, Validation: 5},
		"test": {Epochs: 1, Steps: 5000, Workers: 2, Prefetch: 2, Build: constant(62 * ms), Compute: 10 * ms, Depth: 4, SM: 0.9, Window: 100 * ms,
			Warm: 60, Plan: plan(3), BlockSteps: 20},
	}
	for name, job := range jobs {
		t.Run(name, func(t *testing.T) {
			m, truth := job.Play()
			r, err := Run([]recording.Reader{m}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			book := live(t, m, truth)
			balances := book.Balances()
			if len(balances) != len(r.GPUs) {
				t.Fatalf("%d balances of %d GPUs", len(balances), len(r.GPUs))
			}
			for i, b := range balances {
				if b.Totals.Late != 0 {
					t.Errorf("%d entries came too late", b.Totals.Late)
				}
				for _, a := range ledger.Accounts() {
					if got, want := b.Totals.NS[a], r.GPUs[i].AccountsNS[a.String()]; got != want {
						t.Errorf("GPU %d: %v is %d live, %d in the report", i, a, got, want)
					}
				}
			}
		})
	}
}

// live plays a recording into a book as time passes.
func live(t *testing.T, m *recording.Memory, truth simulate.Truth) *ledger.Book {
	t.Helper()
	book := ledger.NewBook(truth.Begin, 0)
	for _, s := range m.Streams() {
		id, err := book.Declare(s.Declaration)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range s.Notes.GPUs {
			if err := book.Note(id, json.RawMessage(recording.EncodeNote(n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	type event struct {
		at     uint64
		id     recording.StreamID
		record recording.Record
	}
	var events []event
	_ = m.Scan(func(id recording.StreamID, records []recording.Record) error {
		for _, r := range records {
			events = append(events, event{written(&r), id, r})
		}
		return nil
	})
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	const lag = 2000 * ms
	next := uint64(truth.Begin)
	for _, e := range events {
		for ; next < e.at; next += 130 * ms {
			book.CloseUpTo(int64(next) - lag)
		}
		if err := book.Records(e.id, []recording.Record{e.record}); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range book.Balances() {
		if b.Settled < truth.End-20_000*ms && len(events) > 0 {
			t.Errorf("settled %d s before the end", (truth.End-b.Settled)/1e9)
		}
	}
	book.Close(truth.End)
	return book
}
