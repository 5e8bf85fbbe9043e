package recording

import (
	"errors"
	"fmt"
	"io"
)

// frameReader steps through the frames of one segment.
type frameReader struct {
	file  window
	err   error   // of the disk
	found *Damage // what is wrong with the chain of frames, and with the bodies that are read

	frame FrameHeader // the current one
	start int64       // where it starts
	after int64       // where the next frame starts
}

var errNotSegment = errors.New("not a segment")

// header checks the first bytes of the file. A file cut within them is an empty segment with a torn tail.
func (r *frameReader) header() error {
	if r.file.end < SegmentHeaderBytes {
		r.torn()
		return nil
	}
	b, err := r.file.view(0, SegmentHeaderBytes)
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
	if r.err != nil || r.after == r.file.end {
		return false
	}
	if r.file.end-r.after < FrameHeaderBytes {
		return r.torn()
	}
	b, err := r.file.view(r.after, FrameHeaderBytes)
	if err != nil {
		return r.failed(err)
	}
	r.frame = ParseFrameHeader(b)
	r.start = r.after
	r.after = r.start + FrameHeaderBytes + int64(r.frame.Length)
	switch {
	case r.frame == FrameHeader{}: // the file was extended, its content never written
		return r.torn()
	case !r.frame.Plausible():
		r.found.BadFrames++
		r.after = r.file.end
		return false
	case r.after > r.file.end:
		return r.torn()
	}
	return true
}

func (r *frameReader) torn() bool {
	r.found.TornTails++
	r.after = r.file.end
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
	body, err = r.file.view(r.start+FrameHeaderBytes, int(r.frame.Length))
	if errors.Is(err, io.EOF) {
		r.torn()
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !r.frame.Matches(body) {
		r.found.BadFrames++
		return nil, false, nil
	}
	return body, true, nil
}
