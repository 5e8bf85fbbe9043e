package recording

import "encoding/binary"

// frameIndex tells where in a segment the records of each stream stand. It takes three or four bytes a frame: where an agent wrote
// down a little of many streams every second, there are millions.
type frameIndex map[StreamID]*frameRun

// frameRun lists the frames of one stream, in the order of the file.
type frameRun struct {
	coded []byte // per frame two varints: bytes since the end of the one before, and records in it
	end   int64  // of the last frame, in the file
}

// add takes a frame that starts at an offset of the file.
func (x frameIndex) add(id StreamID, at int64, records int) {
	r := x[id]
	if r == nil {
		r = &frameRun{}
		x[id] = r
	}
	r.coded = binary.AppendUvarint(r.coded, uint64(at-r.end))
	r.coded = binary.AppendUvarint(r.coded, uint64(records))
	r.end = at + FrameHeaderBytes + int64(records)*Size
}

// each calls visit with where every frame starts, and how many records it holds, until visit says that it is enough.
func (r *frameRun) each(visit func(at int64, records int) (more bool)) {
	end := int64(0)
	for rest := r.coded; len(rest) > 0; {
		gap, n := binary.Uvarint(rest)
		records, m := binary.Uvarint(rest[n:])
		rest = rest[n+m:]
		at := end + int64(gap)
		end = at + FrameHeaderBytes + int64(records)*Size
		if !visit(at, int(records)) {
			return
		}
	}
}
