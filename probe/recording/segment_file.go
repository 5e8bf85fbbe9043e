package recording

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names within a recording.
const (
	nodePrefix    = "node-"
	manifestName  = "manifest.json"
	segmentPrefix = "segment-"
	segmentSuffix = ".dws"
)

func segmentName(number int) string {
	return fmt.Sprintf("%s%06d%s", segmentPrefix, number, segmentSuffix)
}

// segmentFiles lists the segments of a node's folder in the order they were written.
func segmentFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if n, ok := segmentNumber(e.Name()); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	paths := make([]string, len(numbers))
	for i, n := range numbers {
		paths[i] = filepath.Join(dir, segmentName(n))
	}
	return paths, nil
}

func segmentNumber(name string) (int, bool) {
	middle, ok := strings.CutPrefix(name, segmentPrefix)
	if !ok {
		return 0, false
	}
	middle, ok = strings.CutSuffix(middle, segmentSuffix)
	n, err := strconv.Atoi(middle)
	return n, ok && err == nil && n > 0 && segmentName(n) == name
}

func createSegmentFile(path string) (segmentFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// nextSegment opens the following segment; streams declare themselves in it when they next write.
func (w *Writer) nextSegment() error {
	f, err := w.options.createSegment(filepath.Join(w.dir, segmentName(w.number+1)))
	if err != nil {
		return err
	}
	w.number++
	w.segment, w.good = f, 0
	w.out = append(w.out[:0], segmentHeader()...)
	w.size = int64(len(w.out))
	return w.write()
}

// rotate closes the segment and opens the next one.
func (w *Writer) rotate() error {
	if err := w.write(); err != nil {
		return err
	}
	if err := w.segment.Close(); err != nil {
		return w.fail(err)
	}
	if err := w.nextSegment(); err != nil && w.err == nil {
		return w.fail(err)
	}
	return w.err
}

// write hands the frames in out to the file.
func (w *Writer) write() error {
	if w.err != nil {
		return w.err
	}
	if len(w.out) == 0 {
		return nil
	}
	if n, err := w.segment.Write(w.out); err != nil {
		w.good += wholeFrames(w.out[:n], w.good == 0)
		return w.fail(err)
	}
	w.good += int64(len(w.out))
	w.out = w.out[:0]
	return nil
}

// wholeFrames returns how many bytes of b are whole frames, after the segment's header where b starts with it.
func wholeFrames(b []byte, withHeader bool) (n int64) {
	if withHeader {
		n = SegmentHeaderBytes
	}
	for int64(len(b)) >= n+FrameHeaderBytes {
		end := n + FrameHeaderBytes + int64(ParseFrameHeader(b[n:]).Length)
		if end > int64(len(b)) {
			break
		}
		n = end
	}
	return min(n, int64(len(b)))
}

// fail ends the recording at its last whole frame. That the cut may fail too does not matter: a reader copes with a torn tail.
func (w *Writer) fail(err error) error {
	w.err = fmt.Errorf("writing %s: %w", filepath.Join(w.dir, segmentName(w.number)), explain(err))
	if w.segment != nil {
		_ = w.segment.Truncate(w.good)
	}
	return w.err
}

// writeManifest replaces the manifest in one step: a reader sees the old one or the new one.
func writeManifest(dir string, m Manifest) error {
	b, err := json.MarshalIndent(m.filled(), "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".manifest-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, manifestName))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// filled replaces nil lists, so that the JSON holds [] and {} and not null.
func (m Manifest) filled() Manifest {
	if m.Command == nil {
		m.Command = []string{}
	}
	if m.Options == nil {
		m.Options = map[string]any{}
	}
	if m.Warnings == nil {
		m.Warnings = []string{}
	}
	return m
}
