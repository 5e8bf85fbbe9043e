package recording

import (
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"os"
	"regexp"
	"testing"
)

// TestUpdateVectors rewrites the vectors under -update. The bytes come from the table below and vectorField.put, never
// from the package's own encoders, so that the other tests compare two statements of SPEC.md.
func TestUpdateVectors(t *testing.T) {
	if !*update {
		t.Skip("run with -update to write " + vectorsFile)
	}
	v := vectors{About: aboutVectors}
	for _, l := range recordLayouts {
		v.Records = append(v.Records, l.vector(t, 7, false), l.vector(t, 0xfffffffe, true))
	}
	v.RingHeader = vectorOf(t, ringFixed, ringHeaderFields(4, 6, uint64(len(ringNotes(ringNoteLines)))))
	v.Totals = vectorOf(t, 64, count("u64", "fetches", "wait", "between", "no_grad", "last_end", "batches", "first_begin"))
	v.Ring = ringOf(t, v)
	v.Control = vectorOf(t, 64, controlFields)
	v.PlannedBlock = vectorOf(t, 32, plannedFields)
	v.ControlPage = v.Control.Hex + v.PlannedBlock.Hex
	v.Segment = segmentOf(v)
	v.BusyHeader = vectorOf(t, 64, busyHeaderFields)
	v.BusyEntry = vectorOf(t, 32, busyEntryFields)
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = oneLineFields.ReplaceAll(b, []byte(`{"name": $1, "at": $2, "type": $3, "value": $4}`))
	if err := os.WriteFile(vectorsFile, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// oneLineFields matches a field spread over lines by MarshalIndent.
var oneLineFields = regexp.MustCompile(`\{\s+"name": (.*),\s+"at": (.*),\s+"type": (.*),\s+"value": (.*)\s+\}`)

var aboutVectors = []string{
	"Byte vectors of SPEC.md, read by the tests of every language that writes or reads the format.",
	"hex is the whole structure, little-endian. A field has its offset (at) and type; value null is unknown: all bits set, or NaN for f32 (any NaN is accepted, 7fc00000 is written).",
	"records: kind name and number, sequence number, flags, ref, payload fields. Two per kind: all fields distinct, and all unknown.",
	"ring: a whole file of `bytes` bytes; parts say what stands where, all other bytes are 0. `records` is what a reader returns, oldest first; `lost` what was overwritten.",
	"control_page_start: control (64 bytes) and one planned block (32); the rest of the 4096 bytes is 0.",
	"segment: header, frames, and the whole file. A frame's body is text (declaration, note) or hex (records).",
}

// layout states one kind's payload as SPEC §2 does.
type layout struct {
	kind   Kind
	fields []vectorField
}

func fieldAt(at int, typ, name string) vectorField { return vectorField{Name: name, At: at, Type: typ} }

var recordLayouts = []layout{
	{KindFetch, []vectorField{fieldAt(8, "u64", "enter"), fieldAt(16, "u64", "exit"), fieldAt(24, "u32", "batch"),
		fieldAt(28, "u32", "epoch"), fieldAt(32, "u32", "step"), fieldAt(36, "u32", "thread"), fieldAt(40, "u64", "cpu"),
		fieldAt(48, "u32", "ready"), fieldAt(52, "u32", "block")}},
	{KindStep, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "u32", "step"),
		fieldAt(28, "u32", "thread"), fieldAt(32, "u64", "cpu")}},
	{KindIterator, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "u32", "epoch"),
		fieldAt(28, "u32", "workers"), fieldAt(32, "u32", "length"), fieldAt(36, "u32", "prefetch")}},
	{KindMark, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "u64", "value"),
		fieldAt(32, "u64", "detail")}},
	{KindBlock, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "u32", "block"),
		fieldAt(28, "u32", "first_step"), fieldAt(32, "u32", "steps"), fieldAt(36, "u32", "fetches"),
		fieldAt(40, "u64", "wait"), fieldAt(48, "u32", "reason"), fieldAt(52, "u32", "ready")}},
	{KindExposed, []vectorField{fieldAt(8, "u64", "t"), fieldAt(16, "u64", "idle"), fieldAt(24, "u64", "span"),
		fieldAt(32, "u32", "fetch"), fieldAt(36, "u32", "loader")}},
	{KindSolo, []vectorField{fieldAt(8, "u64", "t"), fieldAt(24, "u32", "batch"), fieldAt(28, "u32", "epoch")}},
	{KindWorker, []vectorField{fieldAt(8, "u64", "t"), fieldAt(16, "u32", "pid"), fieldAt(20, "u32", "worker"),
		fieldAt(24, "u32", "epoch")}},
	{KindBatch, []vectorField{fieldAt(8, "u64", "received"), fieldAt(16, "u64", "begin"), fieldAt(24, "u64", "end"),
		fieldAt(32, "u64", "sent"), fieldAt(40, "u32", "batch"), fieldAt(44, "u32", "resumes"),
		fieldAt(48, "u32", "samples"), fieldAt(52, "u32", "worker")}},
	{KindCost, []vectorField{fieldAt(8, "u64", "cpu"), fieldAt(16, "u64", "process_cpu"), fieldAt(24, "u64", "run_queue"),
		fieldAt(32, "u64", "collate"), fieldAt(40, "u64", "bytes"), fieldAt(48, "u32", "files"),
		fieldAt(52, "u32", "requests"), fieldAt(56, "u32", "tensors")}},
	{KindIO, []vectorField{fieldAt(8, "u64", "rchar"), fieldAt(16, "u64", "read_bytes"), fieldAt(24, "u64", "syscalls"),
		fieldAt(32, "u64", "voluntary"), fieldAt(40, "u64", "involuntary")}},
	{KindRead, []vectorField{fieldAt(8, "u64", "t"), fieldAt(16, "u32", "hash"), fieldAt(20, "u32", "halvings")}},
	{KindStack, []vectorField{fieldAt(8, "u64", "t"), fieldAt(16, "u64", "on"), fieldAt(24, "u64", "off"),
		fieldAt(32, "u64", "unclear"), fieldAt(40, "u32", "call"), fieldAt(44, "u32", "samples")}},
	{KindTransform, []vectorField{fieldAt(8, "u64", "t"), fieldAt(16, "u64", "calls"), fieldAt(24, "u64", "ns"),
		fieldAt(32, "u32", "transform")}},
	{KindSampler, []vectorField{fieldAt(8, "u64", "t"), fieldAt(16, "u64", "looks"), fieldAt(24, "u64", "samples"),
		fieldAt(32, "u64", "outside"), fieldAt(40, "u64", "cpu"), fieldAt(48, "u64", "wall")}},
	{KindGPU, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "f32", "sm"),
		fieldAt(28, "f32", "resident"), fieldAt(32, "f32", "tensor"), fieldAt(36, "f32", "dram"), fieldAt(40, "f32", "copy"),
		fieldAt(44, "f32", "power"), fieldAt(48, "f32", "sm_clock"), fieldAt(52, "f32", "memory")}},
	{KindMachine, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "f32", "busy"),
		fieldAt(28, "f32", "iowait"), fieldAt(32, "f32", "steal"), fieldAt(36, "f32", "runnable"),
		fieldAt(40, "u64", "memory_available"), fieldAt(48, "f32", "cores"), fieldAt(52, "f32", "foreign")}},
	{KindProcess, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "u32", "pid"),
		fieldAt(28, "f32", "cpu"), fieldAt(32, "f32", "system"), fieldAt(36, "f32", "run_queue"), fieldAt(40, "u64", "rss"),
		fieldAt(48, "u32", "threads"), fieldAt(52, "f32", "read"), fieldAt(56, "f32", "received")}},
	{KindLimits, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "f32", "quota"),
		fieldAt(28, "f32", "cpuset"), fieldAt(32, "f32", "usable"), fieldAt(36, "f32", "throttled"),
		fieldAt(40, "u64", "throttled_time"), fieldAt(48, "u64", "memory_limit")}},
	{KindPressure, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "f32", "cpu_some"),
		fieldAt(28, "f32", "io_some"), fieldAt(32, "f32", "io_full"), fieldAt(36, "f32", "memory_some"),
		fieldAt(40, "f32", "memory_full")}},
	{KindDisk, deviceFields}, {KindNet, deviceFields},
	{KindSource, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "u64", "lateness"),
		fieldAt(32, "u32", "samples"), fieldAt(36, "u32", "errors"), fieldAt(40, "f32", "cpu"), fieldAt(44, "u64", "rss")}},
	{KindGPUPipes, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "f32", "engine"),
		fieldAt(28, "f32", "occupancy"), fieldAt(32, "f32", "fp32"), fieldAt(36, "f32", "pcie_in"), fieldAt(40, "f32", "pcie_out"),
		fieldAt(44, "f32", "nvlink_in"), fieldAt(48, "f32", "nvlink_out")}},
	{KindGPUState, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "f32", "power"),
		fieldAt(28, "f32", "power_limit"), fieldAt(32, "f32", "sm_clock"), fieldAt(36, "f32", "sm_clock_max"),
		fieldAt(40, "f32", "memory_used"), fieldAt(44, "f32", "memory_all"), fieldAt(48, "u32", "reasons"), fieldAt(52, "u32", "link"),
		fieldAt(56, "f32", "resident")}},
	{KindGPUProcess, []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "u32", "pid"),
		fieldAt(32, "u64", "memory")}},
	{KindGPUEvent, []vectorField{fieldAt(8, "u64", "t"), fieldAt(16, "u32", "code"), fieldAt(24, "u64", "value")}},
}

var deviceFields = []vectorField{fieldAt(8, "u64", "begin"), fieldAt(16, "u64", "end"), fieldAt(24, "f32", "read"),
	fieldAt(28, "f32", "ops"), fieldAt(32, "f32", "busy"), fieldAt(36, "f32", "read_wait")}

// vector gives every field a value of its own, so that two swapped fields or a missing byte show.
func (l layout) vector(t *testing.T, seq uint32, unknown bool) recordVector {
	fields := make([]vectorField, len(l.fields))
	for i, f := range l.fields {
		fields[i] = f
		switch {
		case unknown:
		case f.Type == "f32":
			fields[i].Value = float64(i+1) / 16
		case f.Type == "u64":
			fields[i].Value = 0x0102030405060700 + uint64(i)
		default:
			fields[i].Value = 0x11223300 + uint64(i)
		}
	}
	head := []vectorField{{Name: "seq", At: 0, Type: "u32", Value: seq}, {Name: "kind", At: 4, Type: "u8", Value: uint8(l.kind)},
		{Name: "flags", At: 5, Type: "u8", Value: 0x21}, {Name: "ref", At: 6, Type: "u16", Value: 0x0304},
		{Name: "seq", At: 60, Type: "u32", Value: seq}}
	bytes := vectorOf(t, Size, append(head, fields...))
	return recordVector{Kind: l.kind.String(), Number: uint8(l.kind), Seq: seq, Flags: 0x21, Ref: 0x0304, Fields: fields, Hex: bytes.Hex}
}

func vectorOf(t *testing.T, size int, fields []vectorField) structVector {
	t.Helper()
	b := make([]byte, size)
	for _, f := range fields {
		if err := f.put(b); err != nil {
			t.Fatal(err)
		}
	}
	return structVector{Bytes: size, Fields: fields, Hex: hex.EncodeToString(b)}
}

// count makes fields one after the other with the values 101, 102, …
func count(typ string, names ...string) (fields []vectorField) {
	for i, n := range names {
		fields = append(fields, vectorField{Name: n, At: 8 * i, Type: typ, Value: uint64(101 + i)})
	}
	return fields
}

func ringHeaderFields(capacity, head, notes uint64) []vectorField {
	return []vectorField{{"magic", 0, "text", "DWRING1\n"}, {"version", 8, "u32", 1}, {"header_bytes", 12, "u32", 65536}, {"record_bytes", 16, "u32", 64},
		{"capacity", 20, "u32", capacity}, {"head", 24, "u64", head}, {"note_bytes", 32, "u64", notes},
		{"notes_dropped", 40, "u64", 1}, {"hook_errors", 48, "u64", 2}, {"state", 56, "u32", 2}, {"hook", 60, "u32", 1},
		{"monotonic", 64, "u64", 123456789000}, {"realtime", 72, "u64", uint64(1700000000123456789)}, {"step", 80, "u64", 17},
		{"step_unit", 88, "u32", 1}, {"parked", 92, "u32", 2}, {"block", 96, "u64", 5}, {"fetches", 104, "u64", 18},
		{"epoch_length", 112, "u64", nil}, {"epoch_batch", 120, "u64", 3},
		{"own_time", 128, "u64", 90000}, {"own_looks", 136, "u64", 40}}
}

var controlFields = []vectorField{{"magic", 0, "text", "DWCTRL1\n"}, {"generation", 8, "u32", 2}, {"mode", 12, "u32", 1}, {"blocks", 16, "u32", 1},
	{"agent_pid", 20, "u32", 4321}, {"cap", 24, "u64", 1 << 31}, {"park_at", 32, "u64", nil}}

var plannedFields = []vectorField{{"block", 0, "u32", 3}, {"leg", 4, "u32", 1}, {"first", 8, "u64", 100}, {"end", 16, "u64", 140},
	{"flags", 24, "u32", 1}, {"trial", 28, "u32", 0x01020008}}

var busyHeaderFields = []vectorField{{"magic", 0, "text", "DWBUSY1\n"}, {"version", 8, "u32", 1}, {"index", 12, "u32", 3}, {"created", 16, "u64", 123456789000},
	{"uuid", 24, "text", "GPU-emulated-0123"}}

var busyEntryFields = []vectorField{{"start", 0, "u64", 123456790000}, {"end", 8, "u64", 123476790000}, {"sm", 16, "f32", 0.875},
	{"tensor", 20, "f32", 0.5}, {"kind", 24, "u32", 1}, {"number", 28, "u32", 9}}

var ringNoteLines = []string{
	`{"producer":"main","host":"node1","boot_id":"b","pid":42,"ppid":1,"start_ticks":77,"rank":0,"local_rank":0,"world_size":1,"restart":null,"threads":2,"gpu_uuid":null,"emulated":true}`,
	`{"note":"clock","monotonic":123456789000,"realtime":1700000000123456789}`,
}

func ringNotes(lines []string) (b []byte) {
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	return b
}

// ringOf is a closed ring of four records into which six were written: two are lost, slots 0 and 1 hold numbers 5 and 6.
func ringOf(t *testing.T, v vectors) ringVector {
	slots := make([]byte, 4*Size)
	var records []string
	for n := uint64(3); n <= 6; n++ {
		r := vectorOf(t, Size, []vectorField{{"seq", 0, "u32", n}, {"kind", 4, "u8", 2}, {"begin", 8, "u64", 1000 * n},
			{"end", 16, "u64", 1000*n + 500}, {"step", 24, "u32", n}, {"thread", 28, "u32", 42}, {"cpu", 32, "u64", nil}, {"seq", 60, "u32", n}})
		copy(slots[(n-1)%4*Size:], unhex(t, r.Hex))
		records = append(records, r.Hex)
	}
	return ringVector{Bytes: 65536 + 4*64, Notes: ringNoteLines, Records: records, Lost: 2, Parts: []part{
		{0, v.RingHeader.Hex}, {1024, v.Totals.Hex}, {4096, hex.EncodeToString(ringNotes(ringNoteLines))}, {65536, hex.EncodeToString(slots)}}}
}

func segmentOf(v vectors) segmentVector {
	s := segmentVector{Header: hex.EncodeToString([]byte("DWSEGM1\n\x01\x00\x00\x00\x00\x00\x00\x00")),
		Frames: []frameVector{{1, 1, ringNoteLines[0], ""}, {3, 1, ringNoteLines[1], ""}, {2, 1, v.Ring.Records[0] + v.Ring.Records[1], ""}}}
	s.Hex = s.Header
	for i, f := range s.Frames {
		body := []byte(f.Body)
		if f.Type == 2 {
			body, _ = hex.DecodeString(f.Body)
		}
		head := make([]byte, 16)
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		for _, p := range []vectorField{{"length", 0, "u32", len(body)}, {"type", 4, "u16", f.Type}, {"stream", 8, "u32", f.Stream}, {"checksum", 12, "u32", sum}} {
			if err := p.put(head); err != nil {
				panic(err)
			}
		}
		s.Frames[i].Hex = hex.EncodeToString(head) + hex.EncodeToString(body)
		s.Hex += s.Frames[i].Hex
	}
	return s
}
