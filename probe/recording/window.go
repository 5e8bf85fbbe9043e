package recording

import (
	"io"
	"os"
	"sync"
)

// window reads a file at rising offsets. Whoever asks for one piece after another gets the file in large gulps; whoever jumps gets
// little more than what was asked for. A segment is read both ways: frames of a few records lie side by side, large ones are
// stepped over.
type window struct {
	f     *os.File
	end   int64 // bytes of the file to read
	buf   []byte
	at    int64 // of buf in the file
	ahead int   // bytes read at once
}

// windows are kept for the next stream: a job has hundreds, one read after another.
var windows = sync.Pool{New: func() any { return new(window) }}

const (
	leastAhead = 512
	mostAhead  = 256 << 10 // fits the second-level cache
)

// open starts over with another file; its buffer is kept.
func (w *window) open(f *os.File, end int64) { *w = window{f: f, end: end, buf: w.buf[:0]} }

// view returns n bytes of the file at an offset; they lie below end and are valid until the next call.
func (w *window) view(at int64, n int) ([]byte, error) {
	if at < w.at || at+int64(n) > w.at+int64(len(w.buf)) {
		if err := w.fill(at, n); err != nil {
			return nil, err
		}
	}
	from := at - w.at
	return w.buf[from : from+int64(n) : from+int64(n)], nil
}

func (w *window) fill(at int64, n int) error {
	if beyond := at - (w.at + int64(len(w.buf))); beyond > int64(w.ahead) || beyond < -int64(len(w.buf)) {
		w.ahead = leastAhead
	} else {
		w.ahead = min(max(2*w.ahead, leastAhead), mostAhead)
	}
	want := int(min(int64(max(n, w.ahead)), w.end-at))
	if cap(w.buf) < want {
		w.buf = make([]byte, want)
	}
	got, err := w.f.ReadAt(w.buf[:want], at)
	w.buf, w.at = w.buf[:got], at
	if got >= n {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}
