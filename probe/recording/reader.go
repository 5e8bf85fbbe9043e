package recording

import "fmt"

// Reader gives back one node's part of a recording. A folder of segments, a bare spool and a [Memory] are Readers, so
// analysis cannot tell them apart.
//
// A Reader never fails for what stands in the recording: damage is counted in [Damage], and only a failing disk or the
// caller's own error ends a Scan.
type Reader interface {
	// Manifest returns what the agent said of the run; the zero Manifest where it wrote none.
	Manifest() Manifest

	// Streams returns every declared stream with its notes, ordered by ID. The caller must not change them.
	Streams() []Stream

	// Scan calls visit with the records of each declared stream in the order of that stream; streams are interleaved
	// as they were written. The slice holds whole records of known kinds and is valid only during the call. An error
	// from visit ends the scan and is returned. Scan may be called again and gives the same records in the same order.
	Scan(visit func(StreamID, []Record) error) error

	// Damage counts what could not be read. It is complete once a Scan has run to its end.
	Damage() Damage
}

// Stream is one process's output: what it said of itself, and everything rare it reported.
type Stream struct {
	ID          StreamID
	Declaration Declaration
	Notes       Notes
}

// Damage counts what a recording lacks. None of it is an error: an agent that was killed, a full disk and a slow reader
// are all normal ends of a recording, and the report says what they cost.
type Damage struct {
	TornTails     uint64 // segments that end inside a frame
	BadFrames     uint64 // frames with a wrong checksum, an impossible length or a body of the wrong shape
	UnknownFrames uint64 // frames of a type this version does not know
	Undeclared    uint64 // records and notes of a stream nobody declared
	UnknownKinds  uint64 // records of a kind this version does not know
	Torn          uint64 // records caught half written
	Lost          uint64 // records overwritten in a ring before anyone read them
	UnknownNotes  uint64 // notes of a name this version does not know
	BadNotes      uint64 // notes that are not JSON objects, and note fields of the wrong type
	DroppedNotes  uint64 // notes that did not fit their ring, or beyond what a reader keeps
	BadFiles      uint64 // segments and rings that could not be understood at all
}

// Clean reports whether nothing was damaged.
func (d Damage) Clean() bool { return d == Damage{} }

// Add returns the sum of both counts.
func (d Damage) Add(e Damage) Damage {
	d.TornTails += e.TornTails
	d.BadFrames += e.BadFrames
	d.UnknownFrames += e.UnknownFrames
	d.Undeclared += e.Undeclared
	d.UnknownKinds += e.UnknownKinds
	d.Torn += e.Torn
	d.Lost += e.Lost
	d.UnknownNotes += e.UnknownNotes
	d.BadNotes += e.BadNotes
	d.DroppedNotes += e.DroppedNotes
	d.BadFiles += e.BadFiles
	return d
}

// String lists the counts that are not zero, "no damage" if there are none.
func (d Damage) String() string {
	text := ""
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{d.TornTails, "torn tails"}, {d.BadFrames, "bad frames"}, {d.UnknownFrames, "unknown frames"},
		{d.Undeclared, "undeclared"}, {d.UnknownKinds, "unknown kinds"}, {d.Torn, "torn records"},
		{d.Lost, "lost records"}, {d.UnknownNotes, "unknown notes"}, {d.BadNotes, "bad notes"},
		{d.DroppedNotes, "dropped notes"}, {d.BadFiles, "bad files"},
	} {
		if c.n == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", c.n, c.what)
	}
	if text == "" {
		return "no damage"
	}
	return text
}

// visitWhole passes on the runs of records that are whole and of a known kind, and counts the others.
// In a sound recording that is one call with the block as it stands: no copy, no allocation.
func visitWhole(id StreamID, block []Record, d *Damage, visit func(StreamID, []Record) error) error {
	start := 0
	for i := range block {
		r := &block[i]
		if r.Whole() && knownKinds[r.Kind()] {
			continue
		}
		if r.Whole() {
			d.UnknownKinds++
		} else {
			d.Torn++
		}
		if i > start {
			if err := visit(id, block[start:i]); err != nil {
				return err
			}
		}
		start = i + 1
	}
	if start == len(block) {
		return nil
	}
	return visit(id, block[start:])
}

// knownKinds tells the kinds of SPEC §2 from those of a later version.
var knownKinds = func() (known [256]bool) {
	for _, k := range Kinds {
		known[k] = true
	}
	return known
}()
