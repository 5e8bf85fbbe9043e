// Reading several streams of one node at once.
//
// What one process and its workers wrote lies in a segment in small frames beside one another: an agent writes down everybody's in turn.
// Stream by stream each frame is a read of its own; all of them in the order of the file, neighbours are read as one.

package recording

import (
	"cmp"
	"slices"
)

// Together visits the records of several declared streams, those of each in their order and the streams in any, and returns what of
// them could not be read. Apart from that it is what [Reader].Stream says of each, and cheaper where the streams lie side by side.
func Together(r Reader, ids []StreamID, visit func(StreamID, []Record) error) (d Damage, err error) {
	if s, ok := r.(*segments); ok && len(ids) > 1 {
		return s.together(ids, visit)
	}
	for _, id := range ids {
		bad, err := r.Stream(id, func(records []Record) error { return visit(id, records) })
		d = d.Add(bad)
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

func (s *segments) together(ids []StreamID, visit func(StreamID, []Record) error) (d Damage, err error) {
	file := windows.Get().(*window)
	defer windows.Put(file)
	var frames []placed
	for i := range s.parts {
		frames = s.parts[i].placed(ids, frames[:0])
		if err := s.parts[i].readPlaced(frames, file, &d, visit); err != nil {
			return d, err
		}
	}
	return d, nil
}

// placed is where a frame of records stands in its segment.
type placed struct {
	at      int64
	records int
	id      StreamID
}

func (f *placed) end() int64 { return f.at + FrameHeaderBytes + int64(f.records)*Size }

// placed lists the frames of several streams in the order of the file.
func (p *segmentPart) placed(ids []StreamID, into []placed) []placed {
	for _, id := range ids {
		if run := p.frames[id]; run != nil {
			run.each(func(at int64, records int) bool {
				into = append(into, placed{at, records, id})
				return true
			})
		}
	}
	slices.SortFunc(into, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	return into
}

// hop is the gap between two frames, in bytes, that costs less to read over than another read does: a system call takes longer than
// copying this much.
const hop = 4096

// neighbours returns how many frames from the first on are read at once, and where the last of them ends.
func neighbours(frames []placed) (n int, end int64) {
	n, end = 1, frames[0].end()
	for n < len(frames) && frames[n].at-end <= hop && frames[n].end()-frames[0].at <= mostAhead {
		end = frames[n].end()
		n++
	}
	return n, end
}

// readPlaced visits frames whose checksum is right, and counts the others.
func (p *segmentPart) readPlaced(frames []placed, file *window, d *Damage, visit func(StreamID, []Record) error) error {
	if len(frames) == 0 {
		return nil
	}
	f, err := p.open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for len(frames) > 0 {
		n, end := neighbours(frames)
		_, _ = file.view(frames[0].at, int(end-frames[0].at)) // what cannot be read shows frame by frame
		for _, x := range frames[:n] {
			take := func(records []Record) error {
				return visitWhole(records, d, func(whole []Record) error { return visit(x.id, whole) })
			}
			if err := readFrame(file, x.at, x.id, x.records, d, take); err != nil {
				return err
			}
		}
		frames = frames[n:]
	}
	return nil
}
