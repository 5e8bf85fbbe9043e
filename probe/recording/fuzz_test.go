package recording

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// FuzzSegment reads arbitrary bytes as a segment, accessors included. Whatever stands in it, opening and scanning are no
// error, a second scan gives the same, and only whole records of declared streams are visited.
func FuzzSegment(f *testing.F) {
	v := unhex(f, loadVectors(f).Segment.Hex)
	f.Add(v)
	f.Add(v[:len(v)-10])
	f.Add(append(v, AppendFrame(nil, FrameRecords, 2, make([]byte, 128))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, segmentName(1)), b, 0o600)
		r, err := Open(dir)
		if err != nil {
			if len(b) >= SegmentHeaderBytes && string(b[:12]) != SegmentMagic+"\x01\x00\x00\x00" {
				return // not a segment, or a newer one
			}
			t.Fatal(err)
		}
		node := r.Readers()[0]
		opened := node.Damage()
		first, damage := scanAll(t, node)
		if second, again := scanAll(t, node); first != second || damage != again || opened != node.Damage() {
			t.Fatalf("scans give %d and %d records, damage %v and %v", first, second, damage, again)
		}
	})
}

// scanAll visits everything, decodes every record and returns how many there were.
func scanAll(t *testing.T, r Reader) (n int, d Damage) {
	declared := map[StreamID]bool{}
	for _, s := range r.Streams() {
		if s.ID == 0 || s.Declaration.Producer == "" {
			t.Fatalf("stream %+v", s)
		}
		declared[s.ID] = true
	}
	d, err := Scan(r, func(id StreamID, records []Record) error {
		if !declared[id] || len(records) == 0 {
			t.Fatalf("visited %d records of stream %d", len(records), id)
		}
		for i := range records {
			if !records[i].Whole() {
				t.Fatal("visited a torn record")
			}
			throughGo(&records[i])
		}
		n += len(records)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, d
}

// FuzzManifest checks that a manifest is understood, refused as newer, or not one: nothing else.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":"datawait.recording/1","ended_at":null,"exit_code":3,"hook":{"attached":true}}`))
	f.Add([]byte(`{"format":"datawait.recording/2"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		if err == nil {
			m.EndedAt.Get()
			m.ExitCode.Get()
			if m.Format == "" {
				t.Fatal("a manifest without a format was accepted")
			}
		}
	})
}

// FuzzNotes checks that every note is decoded, unknown, or bad, and that what was decoded survives another round.
func FuzzNotes(f *testing.F) {
	for _, n := range sampleNotes {
		f.Add([]byte(EncodeNote(n)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var n Notes
		n.Add(b)
		for _, note := range every(n) {
			var again Notes
			again.Add(EncodeNote(note))
			if !contains(again, note) {
				t.Fatalf("%+v became %+v", note, again)
			}
		}
	})
}

// FuzzBusyLog decodes a header and an entry; a sane entry has ratios within 0 and 1 and survives encoding.
func FuzzBusyLog(f *testing.F) {
	v := loadVectors(f)
	f.Add(unhex(f, v.BusyHeader.Hex), unhex(f, v.BusyEntry.Hex))
	f.Fuzz(func(t *testing.T, header, entry []byte) {
		if h, err := ParseBusyHeader(header); err == nil {
			if again, err := ParseBusyHeader(h.Encode()); err != nil || again.Index != h.Index {
				t.Fatalf("%+v became %+v, %v", h, again, err)
			}
		}
		if len(entry) < BusyEntryBytes {
			return
		}
		e := ParseBusyEntry(entry)
		if !e.Sane() {
			return
		}
		if !(e.SM >= 0 && e.SM <= 1 && e.Tensor >= 0 && e.Tensor <= 1) || math.IsNaN(float64(e.SM)) || e.End < e.Start {
			t.Fatalf("sane: %+v", e)
		}
		if ParseBusyEntry(e.Encode()) != e {
			t.Fatalf("%+v did not survive", e)
		}
	})
}

// FuzzControl checks that an accepted page holds a plan every rank reads alike.
func FuzzControl(f *testing.F) {
	f.Add(append(unhex(f, loadVectors(f).ControlPage), make([]byte, ControlBytes-96)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseControl(b)
		if err != nil {
			return
		}
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		again, err := ParseControl(c.encode(2))
		if err != nil || len(again.Plan) != len(c.Plan) {
			t.Fatalf("%+v became %+v, %v", c, again, err)
		}
	})
}
