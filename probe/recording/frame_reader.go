package recording

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// frameReader steps through the frames of one segment.
type frameReader struct {
	f     *os.File
	end   int64 // bytes of the file to read
	ahead int   // bytes to read at once
	err   error // of the disk

	// What is wrong with the chain of frames is found by every pass over the file, what is wrong inside a body only by
	// the pass that reads it; they are counted apart, so that two passes do not count one thing twice.
	structure, content *Damage

	frame FrameHeader // the current one
	at    int64       // where its body starts
	after int64       // where the next frame starts
	buf   []byte      // holds the file's bytes from bufAt on
	bufAt int64
}

var errNotSegment = errors.New("not a segment")

// header checks the first bytes of the file. A file cut within them is an empty segment with a torn tail.
func (r *frameReader) header() error {
	r.buf = r.buf[:0]
	if r.end < SegmentHeaderBytes {
		r.structure.TornTails++
		r.after = r.end
		return nil
	}
	b, err := r.view(0, SegmentHeaderBytes)
	switch {
	case errors.Is(err, io.EOF):
		return errNotSegment
	case err != nil:
		return err
	case string(b[:8]) != SegmentMagic:
		return errNotSegment
	case b[8] != SegmentVersion || b[9] != 0 || b[10] != 0 || b[11] != 0:
		return fmt.Errorf("segment version is not %d: %w", SegmentVersion, ErrNewer)
	}
	r.after = SegmentHeaderBytes
	return nil
}

// next moves to the following frame. It returns false at the end, at a torn tail, and after a length that cannot be true:
// behind that no frame can be found.
func (r *frameReader) next() bool {
	if r.err != nil || r.after == r.end {
		return false
	}
	if r.end-r.after < FrameHeaderBytes {
		return r.torn()
	}
	b, err := r.view(r.after, FrameHeaderBytes)
	if err != nil {
		return r.failed(err)
	}
	r.frame = ParseFrameHeader(b)
	r.at = r.after + FrameHeaderBytes
	r.after = r.at + int64(r.frame.Length)
	switch {
	case r.frame == FrameHeader{}: // the file was extended, its content never written
		return r.torn()
	case !r.frame.Plausible():
		r.structure.BadFrames++
		r.after = r.end
		return false
	case r.after > r.end:
		return r.torn()
	}
	return true
}

func (r *frameReader) torn() bool {
	r.structure.TornTails++
	r.after = r.end
	return false
}

// failed tells a file that got shorter from a failing disk.
func (r *frameReader) failed(err error) bool {
	if errors.Is(err, io.EOF) {
		return r.torn()
	}
	r.err = err
	return false
}

// body returns the current frame's body if its checksum is right; it is valid until the next call.
func (r *frameReader) body() (body []byte, ok bool, err error) {
	body, err = r.view(r.at, int(r.frame.Length))
	if errors.Is(err, io.EOF) {
		r.torn()
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !r.frame.Matches(body) {
		r.content.BadFrames++
		return nil, false, nil
	}
	return body, true, nil
}

// recordBody is body for a frame of records; what it counts goes to d.
func (r *frameReader) recordBody() (body []byte, ok bool, err error) {
	if r.frame.Length%Size != 0 {
		r.content.BadFrames++
		return nil, false, nil
	}
	return r.body()
}

// view returns n bytes of the file at an offset below end, from the buffer where it holds them.
func (r *frameReader) view(at int64, n int) ([]byte, error) {
	if at < r.bufAt || at+int64(n) > r.bufAt+int64(len(r.buf)) {
		if err := r.fill(at, n); err != nil {
			return nil, err
		}
	}
	from := at - r.bufAt
	return r.buf[from : from+int64(n) : from+int64(n)], nil
}

func (r *frameReader) fill(at int64, n int) error {
	want := int(min(int64(max(n, r.ahead)), r.end-at))
	if cap(r.buf) < want {
		r.buf = make([]byte, want)
	}
	got, err := r.f.ReadAt(r.buf[:want], at)
	r.buf, r.bufAt = r.buf[:got], at
	if got >= n {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}
