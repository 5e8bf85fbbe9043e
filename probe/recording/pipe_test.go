package recording

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

var _ Sink = (*PipeWriter)(nil)

func forwardAll(r io.Reader, f *PipeForward) error {
	frames := NewPipeReader(r)
	for {
		frame, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f.Forward(frame)
		}
		if err != nil {
			return err
		}
	}
}

func TestAPipeCarriesAStory(t *testing.T) {
	var pipe bytes.Buffer
	w, err := NewPipeWriter(&pipe)
	if err != nil {
		t.Fatal(err)
	}
	want, got := NewMemory(Manifest{}), NewMemory(Manifest{})
	tell(t, 3, 50, w, want)
	f := NewPipeForward(got)
	if err := forwardAll(&pipe, f); err != nil || !f.Damage.Clean() {
		t.Fatal(err, f.Damage)
	}
	if !sameContent(t, contentOf(t, got), contentOf(t, want)) {
		t.Error("what came out differs from what went in")
	}
}

func TestAPipeIsCutOrDamaged(t *testing.T) {
	var pipe bytes.Buffer
	w, _ := NewPipeWriter(&pipe)
	id, _ := w.Declare(Declaration{Producer: ProducerAgent})
	r := numbered(1)
	r.SetSeq(1)
	w.Records(id, []Record{r})
	whole := pipe.Bytes()
	for cut := range len(whole) {
		err := forwardAll(bytes.NewReader(whole[:cut]), NewPipeForward(NewMemory(Manifest{})))
		atFrame := cut == 0 || cut == SegmentHeaderBytes || cut == len(whole)-FrameHeaderBytes-Size
		if (err == nil) != atFrame {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	for at := range len(whole) {
		b := bytes.Clone(whole)
		b[at] ^= 0x40
		m := NewMemory(Manifest{})
		forwardAll(bytes.NewReader(b), NewPipeForward(m)) // must neither panic nor pass on a damaged record
		for _, records := range contentOf(t, m).Records {
			if !bytes.Equal(records, r[:]) {
				t.Errorf("flipped byte %d: got %x", at, records)
			}
		}
	}
}

func TestOddFramesOfAPipeAreCounted(t *testing.T) {
	m := NewMemory(Manifest{})
	f := NewPipeForward(m)
	whole := numbered(1)
	whole.SetSeq(1)
	for _, frame := range []PipeFrame{
		{FrameRecords, 1, whole[:]},
		{FrameDeclaration, 1, []byte(`{`)},
		{FrameDeclaration, 1, []byte(`{"producer":"agent"}`)},
		{FrameDeclaration, 1, []byte(`{"producer":"agent"}`)},
		{FrameRecords, 1, append(make([]byte, Size), whole[:]...)},
		{FrameNote, 1, []byte(`{`)},
		{9, 1, nil},
	} {
		if err := f.Forward(frame); err != nil {
			t.Fatal(err)
		}
	}
	if want := (Damage{Undeclared: 1, BadFrames: 2, Torn: 1, BadNotes: 1, UnknownFrames: 1}); f.Damage != want {
		t.Errorf("damage %v, want %v", f.Damage, want)
	}
	if c := contentOf(t, m); len(c.Streams) != 1 || c.count(1) != 1 {
		t.Errorf("content %+v", c)
	}
	w, _ := NewPipeWriter(io.Discard)
	if w.Records(1, []Record{whole}) == nil {
		t.Error("an undeclared stream was written")
	}
	if id, _ := w.Declare(Declaration{}); w.Note(id, make([]byte, maxPipeBody+1)) == nil {
		t.Error("a frame too large for a reader was written")
	}
}
