package recording

import "fmt"

// Reader gives back one node's part of a recording. A folder of segments, a bare spool and a [Memory] are Readers, so
// analysis cannot tell them apart.
//
// A Reader never fails for what stands in the recording: damage is counted in [Damage], and only a failing disk or the
// caller's own error ends the reading of a stream.
type Reader interface {
	// Manifest returns what the agent said of the run; the zero Manifest where it wrote none.
	Manifest() Manifest

	// Streams returns every declared stream with its notes, ordered by ID. The caller must not change them.
	Streams() []Stream

	// Stream calls visit with the records of one declared stream in their order, and returns what of them could not be
	// read. The slice holds whole records of known kinds and is valid only during the call. An error from visit ends the
	// reading and is returned. Streams may be read again, and several at once.
	Stream(id StreamID, visit func([]Record) error) (Damage, error)

	// Damage counts what could not be read when the recording was opened, and what its notes say is missing. What is wrong
	// with the records of a stream is counted by Stream.
	Damage() Damage
}

// Scan visits the records of every stream of a reader, one stream after the other, and returns what of them could not be read.
func Scan(r Reader, visit func(StreamID, []Record) error) (d Damage, err error) {
	for _, s := range r.Streams() {
		bad, err := r.Stream(s.ID, func(records []Record) error { return visit(s.ID, records) })
		d = d.Add(bad)
		if err != nil {
			return d, err
		}
	}
	return d, nil
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
func visitWhole(block []Record, d *Damage, visit func([]Record) error) error {
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
			if err := visit(block[start:i]); err != nil {
				return err
			}
		}
		start = i + 1
	}
	if start == len(block) {
		return nil
	}
	return visit(block[start:])
}

// knownKinds tells the kinds of SPEC §2 from those of a later version.
var knownKinds = func() (known [256]bool) {
	for _, k := range Kinds {
		known[k] = true
	}
	return known
}()
