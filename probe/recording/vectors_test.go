package recording

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

// vectors is testdata/vectors.json: the same bytes for every language that writes or reads the format.
type vectors struct {
	About        []string       `json:"about"`
	Records      []recordVector `json:"records"`
	RingHeader   structVector   `json:"ring_header"`
	Totals       structVector   `json:"totals"`
	Ring         ringVector     `json:"ring"`
	Control      structVector   `json:"control"`
	PlannedBlock structVector   `json:"planned_block"`
	ControlPage  string         `json:"control_page_start"` // hex, the first 96 bytes; the rest is 0
	Segment      segmentVector  `json:"segment"`
	BusyHeader   structVector   `json:"busy_header"`
	BusyEntry    structVector   `json:"busy_entry"`
}

type recordVector struct {
	Kind   string        `json:"kind"`
	Number uint8         `json:"number"`
	Seq    uint32        `json:"seq"`
	Flags  uint8         `json:"flags"`
	Ref    uint16        `json:"ref"`
	Fields []vectorField `json:"fields"`
	Hex    string        `json:"hex"`
}

type structVector struct {
	Bytes  int           `json:"bytes"`
	Fields []vectorField `json:"fields"`
	Hex    string        `json:"hex"`
}

// vectorField is one field with its place; a null value is unknown: all bits set, or NaN for f32.
type vectorField struct {
	Name  string `json:"name"`
	At    int    `json:"at"`
	Type  string `json:"type"` // u8 u16 u32 u64 f32 text
	Value any    `json:"value"`
}

type ringVector struct {
	Bytes   int      `json:"bytes"` // of the whole file; bytes not named are 0
	Parts   []part   `json:"parts"`
	Notes   []string `json:"notes"`
	Records []string `json:"records"` // hex, oldest first, as a reader returns them
	Lost    uint64   `json:"lost"`
}

type part struct {
	At  int    `json:"at"`
	Hex string `json:"hex"`
}

type segmentVector struct {
	Header string        `json:"header"`
	Frames []frameVector `json:"frames"`
	Hex    string        `json:"hex"`
}

type frameVector struct {
	Type   uint16 `json:"type"`
	Stream uint32 `json:"stream"`
	Body   string `json:"body"` // text of a declaration or note, hex of records
	Hex    string `json:"hex"`
}

const vectorsFile = "testdata/vectors.json"

func loadVectors(t testing.TB) (v vectors) {
	t.Helper()
	b, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// put writes the field where the vector says it stands. It is written without the package's encoders on purpose.
func (f vectorField) put(b []byte) error {
	if s, ok := f.Value.(string); ok && f.Type == "text" {
		copy(b[f.At:], s)
		return nil
	}
	bits, size, err := f.bits()
	for i := range size {
		b[f.At+i] = byte(bits >> (8 * i))
	}
	return err
}

func (f vectorField) bits() (bits uint64, size int, err error) {
	size = map[string]int{"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f32": 4}[f.Type]
	if size == 0 {
		return 0, 0, fmt.Errorf("%s has type %q", f.Name, f.Type)
	}
	if f.Type == "f32" {
		v := math.NaN()
		if f.Value != nil {
			_, err = fmt.Sscan(fmt.Sprint(f.Value), &v)
		}
		return uint64(math.Float32bits(float32(v))), size, err
	}
	if f.Value == nil {
		return math.MaxUint64, size, nil
	}
	_, err = fmt.Sscan(fmt.Sprint(f.Value), &bits)
	return bits, size, err
}

// holds checks a decoded Go struct against the fields: same order, same names, same bits. skip leading struct fields are
// not part of the payload.
func holds(t *testing.T, what string, decoded any, skip int, fields []vectorField) {
	t.Helper()
	v := reflect.ValueOf(decoded)
	if v.NumField()-skip != len(fields) {
		t.Errorf("%s: Go has %d fields, the vector %d", what, v.NumField()-skip, len(fields))
		return
	}
	for i, f := range fields {
		name := v.Type().Field(i + skip).Name
		if !strings.EqualFold(name, strings.ReplaceAll(f.Name, "_", "")) {
			t.Errorf("%s: field %d is %s in Go and %s in the vector", what, i, name, f.Name)
		}
		want, _, err := f.bits()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got, same := goBits(v.Field(i+skip), want); !same {
			t.Errorf("%s: %s decodes to %#x, want %#x", what, f.Name, got, want)
		}
	}
}

// goBits compares a Go field with the wanted bits; any NaN equals any other.
func goBits(v reflect.Value, want uint64) (uint64, bool) {
	if v.Kind() != reflect.Float32 {
		size := v.Type().Bits()
		return v.Uint(), v.Uint() == want&(math.MaxUint64>>(64-size))
	}
	got := float32(v.Float())
	bits := uint64(math.Float32bits(got))
	return bits, bits == want || got != got && math.IsNaN(float64(math.Float32frombits(uint32(want))))
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRecordVectors(t *testing.T) {
	seen := map[Kind]bool{}
	for _, v := range loadVectors(t).Records {
		r := Record(unhex(t, v.Hex))
		seen[r.Kind()] = true
		if !r.Whole() || r.Seq() != v.Seq || uint8(r.Kind()) != v.Number || r.Flags() != v.Flags || r.Ref() != v.Ref ||
			r.Kind().String() != v.Kind {
			t.Errorf("%s: head decodes to %v seq %d flags %d ref %d", v.Kind, r.Kind(), r.Seq(), r.Flags(), r.Ref())
		}
		decoded, encoded := throughGo(&r)
		holds(t, v.Kind, decoded, 2, v.Fields)
		encoded.SetSeq(v.Seq)
		if encoded != r {
			t.Errorf("%s: encodes to\n%x, want\n%x", v.Kind, encoded, r)
		}
	}
	for _, k := range Kinds {
		if !seen[k] {
			t.Errorf("no vector of kind %v", k)
		}
	}
}

// throughGo decodes a record into its struct and encodes that again.
func throughGo(r *Record) (decoded any, encoded Record) {
	method := map[Kind]string{KindFetch: "Fetch", KindStep: "Step", KindIterator: "Iterator", KindMark: "Mark",
		KindBlock: "Block", KindExposed: "Exposed", KindSolo: "Solo", KindWorker: "Worker", KindBatch: "Batch",
		KindCost: "Cost", KindIO: "IO", KindRead: "Read", KindStack: "Stack", KindTransform: "Transform", KindSampler: "Sampler", KindGPU: "GPU", KindMachine: "Machine", KindProcess: "Process",
		KindLimits: "Limits", KindPressure: "Pressure", KindDisk: "Device", KindNet: "Device", KindSource: "Source",
		KindGPUPipes: "GPUPipes", KindGPUState: "GPUState", KindGPUProcess: "GPUProcess", KindGPUEvent: "GPUEvent"}[r.Kind()]
	if method == "" {
		return struct{}{}, Record{}
	}
	v := reflect.ValueOf(r).MethodByName(method).Call(nil)[0]
	var args []reflect.Value
	if method == "Device" {
		args = append(args, reflect.ValueOf(r.Kind()))
	}
	return v.Interface(), v.MethodByName("Encode").Call(args)[0].Interface().(Record)
}

func TestStructVectors(t *testing.T) {
	v := loadVectors(t)
	equal := func(what string, got []byte, wantHex string) {
		t.Helper()
		if hex.EncodeToString(got) != wantHex {
			t.Errorf("%s encodes to\n%x, want\n%s", what, got, wantHex)
		}
	}
	h, err := ParseRingHeader(unhex(t, v.RingHeader.Hex))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "ring header", h, 0, v.RingHeader.Fields[4:]) // after magic, version and sizes
	equal("ring header", h.Encode(), v.RingHeader.Hex)

	totals := ParseTotals(unhex(t, v.Totals.Hex))
	holds(t, "totals", totals, 0, v.Totals.Fields)
	equal("totals", totals.Encode(), v.Totals.Hex)

	busy, err := ParseBusyHeader(unhex(t, v.BusyHeader.Hex))
	if err != nil || busy != (BusyHeader{Index: 3, Created: 123456789000, UUID: "GPU-emulated-0123"}) {
		t.Errorf("busy header decodes to %+v, %v", busy, err)
	}
	equal("busy header", busy.Encode(), v.BusyHeader.Hex)

	entry := ParseBusyEntry(unhex(t, v.BusyEntry.Hex))
	holds(t, "busy entry", entry, 0, v.BusyEntry.Fields)
	equal("busy entry", entry.Encode(), v.BusyEntry.Hex)
	if !entry.Sane() {
		t.Error("the busy entry is not sane")
	}
}

func TestControlVector(t *testing.T) {
	v := loadVectors(t)
	page := append(unhex(t, v.ControlPage), make([]byte, ControlBytes)...)[:ControlBytes]
	c, err := ParseControl(page)
	if err != nil || len(c.Plan) != 1 {
		t.Fatalf("control page decodes to %+v, %v", c, err)
	}
	if got := c.encode(2); string(got) != string(page) {
		t.Errorf("control page encodes to\n%x, want\n%x", got[:96], page[:96])
	}
	for i, want := range []uint64{2, uint64(c.Mode), 1, uint64(c.AgentPID), c.Cap, c.ParkAt} {
		if got, _, _ := v.Control.Fields[i+1].bits(); got != want {
			t.Errorf("%s is %d, the vector says %d", v.Control.Fields[i+1].Name, want, got)
		}
	}
	b := c.Plan[0]
	for i, want := range []uint64{uint64(b.Block), uint64(b.Leg), b.First, b.End, uint64(b.Flags), uint64(b.Trial.word())} {
		if got, _, _ := v.PlannedBlock.Fields[i].bits(); got != want {
			t.Errorf("%s is %d, the vector says %d", v.PlannedBlock.Fields[i].Name, want, got)
		}
	}
}

func TestSegmentVector(t *testing.T) {
	v := loadVectors(t).Segment
	got := segmentHeader()
	if hex.EncodeToString(got) != v.Header {
		t.Errorf("segment header is %x, want %s", got, v.Header)
	}
	for _, f := range v.Frames {
		body := []byte(f.Body)
		if FrameType(f.Type) == FrameRecords {
			body = unhex(t, f.Body)
		}
		frame := AppendFrame(nil, FrameType(f.Type), StreamID(f.Stream), body)
		if hex.EncodeToString(frame) != f.Hex {
			t.Errorf("frame %d of stream %d is %x, want %s", f.Type, f.Stream, frame, f.Hex)
		}
		if h := ParseFrameHeader(frame); !h.Matches(body) || h.Type != FrameType(f.Type) || h.Stream != StreamID(f.Stream) {
			t.Errorf("frame header decodes to %+v", h)
		}
		got = append(got, frame...)
	}
	if hex.EncodeToString(got) != v.Hex {
		t.Error("the segment is not its header and frames")
	}
}
