package recording

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/datawait/datawait/probe/unit"
)

// spool reads a folder of rings as a recording (SPEC §6, "bare spool"): a run without an agent, or what an agent that was
// killed had not drained yet.
type spool struct {
	paths   []string     // by stream, from 1
	headers []RingHeader // as they were when the spool was opened: a living process goes on writing, and nobody reads beyond
	streams []Stream
	found   Damage
}

// maxRings bounds how many rings of one folder are read.
const maxRings = 1 << 17

func openSpool(dir string) (*spool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s, rings := &spool{}, 0
	for _, e := range entries {
		if _, _, ok := ParseRingName(e.Name()); !ok {
			continue
		}
		if rings++; rings > maxRings {
			s.found.BadFiles++
			continue
		}
		if err := s.add(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	if rings == 0 {
		return nil, ErrNotRecording
	}
	return s, nil
}

// add reads the declaration, notes and sums of one ring. A ring that cannot be read is counted.
func (s *spool) add(path string) error {
	r, err := OpenRing(path)
	if errors.Is(err, ErrNewer) {
		return err
	}
	if errors.Is(err, ErrUnmade) {
		return nil
	}
	if err != nil {
		s.found.BadFiles++
		return nil
	}
	defer r.Close()
	stream := Stream{ID: StreamID(len(s.paths) + 1), Declaration: r.Declaration()}
	h, err := r.Header()
	if err == nil {
		err = s.addNotes(r, h, &stream.Notes)
	}
	if err != nil {
		s.found.BadFiles++
		return nil
	}
	s.paths = append(s.paths, path)
	s.headers = append(s.headers, h)
	s.streams = append(s.streams, stream)
	return nil
}

// addNotes takes the notes of the ring and makes those an agent would have made at its end.
func (s *spool) addNotes(r *Ring, h RingHeader, n *Notes) error {
	notes, err := r.Notes(h)
	if err != nil {
		return err
	}
	for _, note := range notes {
		n.Add(note)
	}
	n.Bad += r.BadNotes()
	totals, err := r.Totals()
	if err != nil {
		return err
	}
	n.Sums = append(n.Sums, SumsOf(totals)...)
	if cost, ok := h.Cost(); ok {
		n.HookCosts = append(n.HookCosts, cost)
	}
	if lost := r.oldestSafe(h.Head, h.State != RingClosed) - 1; lost > 0 {
		n.Lost = append(n.Lost, LostNote{Records: lost})
	}
	s.found.DroppedNotes += h.NotesDropped
	return nil
}

// SumsOf returns a note for every loader slot that was used.
func SumsOf(totals [RingTotalSlots]Totals) (sums []SumsNote) {
	for i, t := range totals {
		if t == (Totals{}) {
			continue
		}
		sums = append(sums, SumsNote{Loader: uint16(i),
			Fetches: known(t.Fetches), WaitNS: known(t.Wait), BetweenNS: known(t.Between), Batches: known(t.Batches),
			NoGrad: known(t.NoGrad), FirstBegin: known(t.FirstBegin), LastEnd: known(t.LastEnd)})
	}
	return sums
}

// known returns the value, or unknown where all bits are set.
func known(v uint64) unit.Maybe[uint64] {
	if v == Unknown64 {
		return unit.None[uint64]("the hook did not measure it")
	}
	return unit.Some(v)
}

// Manifest returns the zero manifest: no agent wrote one.
func (s *spool) Manifest() Manifest { return Manifest{} }

// Streams returns one stream per ring.
func (s *spool) Streams() []Stream { return s.streams }

// Damage counts what the rings lack.
func (s *spool) Damage() Damage { return s.found.Add(noteDamage(s.streams)) }

// Stream visits what a ring held when the spool was opened. A ring that went bad or away since is counted; any other error is the
// visitor's or the disk's.
func (s *spool) Stream(id StreamID, visit func([]Record) error) (d Damage, err error) {
	if id == 0 || int(id) > len(s.paths) {
		return d, nil
	}
	err = readRing(s.paths[id-1], s.headers[id-1], &d, visit)
	if errors.Is(err, ErrNotRing) || errors.Is(err, ErrNotReady) || errors.Is(err, fs.ErrNotExist) {
		d.BadFiles++
		err = nil
	}
	return d, err
}

func readRing(path string, h RingHeader, d *Damage, visit func([]Record) error) error {
	r, err := OpenRing(path)
	if err != nil {
		return err
	}
	defer r.Close()
	take := func(records []Record) error { return visitWhole(records, d, visit) }
	if h.State == RingClosed {
		err = r.Finish(h, take)
	} else if err = r.Drain(h, take); err == nil {
		err = r.Drain(h, take) // behind a torn record near the head
	}
	d.Torn += r.Torn()
	return err
}
