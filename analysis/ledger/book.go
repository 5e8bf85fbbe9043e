package ledger

import (
	"encoding/json"
	"math"

	"github.com/datawait/datawait/probe/recording"
)

// Book keeps the pages of one node while its job runs. It is a recording.Sink: what goes into a recording goes into a Book, and
// settling as time passes gives the balances that analysing the finished recording gives.
//
// What it cannot know in time it decides at once, where a finished recording would show it: a job that never computes gradients
// looks like one that only validates. It takes windows as their source wrote them: who holds a GPU by looks at its processes, the engine
// counter of a MIG slice, and what one window says of another are for a finished recording alone.
type Book struct {
	begin, idleAfter int64
	impatience       int64 // ns; 0 = none
	bound            int   // spans of one process that are not settled; 0 = none
	streams          []*stream
	pages            []*account
}

// Bounded says how much one process may tell ahead of what can be settled: what does not fit is dropped, and counted as late. Of a process
// that lies about time nothing is ever settled.
func (b *Book) Bounded(spans int) { b.bound = spans }

// Impatient bounds in time, in ns, how long a wait is held back for a device's clock of which nothing has been seen. Where steps take minutes
// a running job would show nothing for an hour; what a clock then tells of its first waits comes too late.
func (b *Book) Impatient(ns int64) { b.impatience = ns }

// Unclocked says of a stream that no device's clock tells of its waits: they are not held back for one.
func (b *Book) Unclocked(id recording.StreamID) { b.streams[id-1].blind = patience + 1 }

// account is the page of one GPU.
type account struct {
	note  recording.GPUNote
	page  *Page
	ranks int
}

// NewBook opens the book of a node whose job began at that time (ns, its monotonic clock). idleAfter as in NewPage.
func NewBook(begin, idleAfter int64) *Book { return &Book{begin: begin, idleAfter: idleAfter} }

// Balance is what one GPU's page holds.
type Balance struct {
	GPU     recording.GPUNote
	Ranks   int   // processes that use it
	Settled int64 // ns; everything before is in Totals
	Totals  Totals
}

// Declare introduces a stream.
func (b *Book) Declare(d recording.Declaration) (recording.StreamID, error) {
	b.streams = append(b.streams, &stream{book: b, declaration: d, gpus: map[uint16]*account{}})
	return recording.StreamID(len(b.streams)), nil
}

// Note takes what a stream says of GPUs; it has no use for other notes.
func (b *Book) Note(id recording.StreamID, raw json.RawMessage) error {
	if id == 0 || int(id) > len(b.streams) {
		return nil
	}
	s := b.streams[id-1]
	var note struct {
		Note    string  `json:"note"`
		GPUUUID *string `json:"gpu_uuid"` // of a device note
		recording.GPUNote
	}
	if json.Unmarshal(raw, &note) != nil {
		return nil
	}
	switch note.Note {
	case "gpu":
		s.gpus[note.GPU] = b.open(note.GPUNote)
	case "device":
		if s.declaration.GPUUUID == nil {
			s.declaration.GPUUUID = note.GPUUUID
		}
	}
	return nil
}

// open returns the page of a GPU; the GPU of a note without UUID is one of its own.
func (b *Book) open(note recording.GPUNote) *account {
	for _, a := range b.pages {
		if a.note.UUID == note.UUID && note.UUID != "" {
			a.note = note
			return a
		}
	}
	a := &account{note: note, page: NewPage(b.begin, b.idleAfter)}
	a.page.bound = b.bound
	b.pages = append(b.pages, a)
	return a
}

// Records takes records of a declared stream.
func (b *Book) Records(id recording.StreamID, records []recording.Record) error {
	if id == 0 || int(id) > len(b.streams) {
		return nil
	}
	s := b.streams[id-1]
	for i := range records {
		s.take(&records[i])
	}
	return nil
}

// CloseUpTo settles every page as far as t allows (see Page.CloseUpTo).
func (b *Book) CloseUpTo(t int64) {
	b.assign()
	for _, s := range b.streams {
		s.settle(t)
	}
	for _, a := range b.pages {
		a.page.CloseUpTo(t)
	}
}

// Close settles everything up to end.
func (b *Book) Close(end int64) {
	b.assign()
	for _, s := range b.streams {
		s.settle(math.MaxInt64)
	}
	for _, a := range b.pages {
		a.page.Close(end)
	}
}

// Balances returns what is settled, in the order in which the GPUs were first named.
func (b *Book) Balances() []Balance {
	all := make([]Balance, len(b.pages))
	for i, a := range b.pages {
		all[i] = Balance{GPU: a.note, Ranks: a.ranks, Settled: a.page.Settled(), Totals: a.page.Totals()}
	}
	return all
}

// assign gives training processes their lane, once they show that they train: on the GPU they declare, else on the only one, else on
// that of their local rank.
func (b *Book) assign() {
	for _, s := range b.streams {
		if s.account != nil || !s.trains {
			continue
		}
		if a := b.match(&s.declaration); a != nil {
			s.account, s.lane = a, a.page.Lane()
			a.ranks++
			for _, x := range s.early {
				a.page.Add(s.lane, x)
			}
			s.early = nil
		}
	}
}

func (b *Book) match(d *recording.Declaration) *account {
	if d.GPUUUID != nil && *d.GPUUUID != "" {
		for _, a := range b.pages {
			if SameGPU(*d.GPUUUID, a.note.UUID) {
				return a
			}
		}
	}
	if len(b.pages) == 1 {
		return b.pages[0]
	}
	if d.LocalRank != nil && *d.LocalRank >= 0 && *d.LocalRank < len(b.pages) {
		return b.pages[*d.LocalRank]
	}
	return nil
}
