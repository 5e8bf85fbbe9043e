package recording

import (
	"reflect"
	"slices"
	"testing"

	"github.com/datawait/datawait/probe/unit"
)

func decodeNotes(lines ...string) (n Notes) {
	for _, l := range lines {
		n.Add([]byte(l))
	}
	return n
}

func TestNotesSurviveEncoding(t *testing.T) {
	var got Notes
	for _, n := range sampleNotes {
		got.Add(EncodeNote(n))
	}
	if got.Bad != 0 || got.Unknown != 0 {
		t.Fatalf("bad %d, unknown %d", got.Bad, got.Unknown)
	}
	for _, want := range sampleNotes {
		if !contains(got, want) {
			t.Errorf("%T did not survive: %+v", want, got)
		}
	}
}

var sampleNotes = []Note{
	LoaderNote{Loader: 1, Kind: "torch", Dataset: "d", Length: unit.Some[int64](9), Iterable: unit.Some(false),
		Arguments: LoaderArguments{Workers: unit.Some[int64](4), Context: unit.Some("fork")}},
	ClockNote{Monotonic: 1, Realtime: 2},
	HookErrorNote{Reason: 3, Where: "fetch", Error: "boom"},
	SaveGuardNote{Call: "torch.save", Target: "a.pt"},
	SumsNote{Loader: 2, Fetches: unit.Some[uint64](5), WaitNS: unit.Some[uint64](6)},
	LostNote{Records: 7, Torn: 1},
	EndedNote{T: 8, Running: true},
	GPUNote{GPU: 1, UUID: "GPU-x", Emulated: true, Grade: "C", Why: "only source"},
	DeviceNameNote{Class: ClassDisk, Ref: 3, Name: "nvme0n1", Sort: SortPhysical},
	DeviceNameNote{Class: ClassSource, Ref: 1, Name: "host/sockets", Why: "no socket diagnostics here"},
	HostNote{Cores: unit.Some[int64](2), Why: map[string]string{"memory_bytes": "no /proc"}},
	LegSkippedNote{Leg: LegReread, Reason: "iterable"},
	PhaseNote{T: 9, Phase: "test"},
	JobNote{PythonChildren: 3, Spools: 2},
	JobNote{PythonChildren: 3, KeptOut: []KeptOut{{PID: 4, Command: "python3 -I", Why: "-I"}}, Refused: []string{"full"}, OtherLoaders: []string{"ffcv.loader"}},
	OtherLoaderNote{Module: "torchdata.nodes"},
	GPUNote{GPU: 2, UUID: "MIG-y", Parent: "GPU-x", GI: unit.Some[int64](1), CI: unit.Some[int64](0), Index: unit.Some[int64](3), Interval: unit.Some[uint64](100e6)},
	AllocationNote{T: 9, Since: 8, UUID: "GPU-x", By: AllocatedByKubernetes, Holders: []Holder{{Namespace: "ml", Pod: "train-0", Container: "main"}}},
	AllocationNote{T: 10, Since: 9, UUID: "GPU-x", By: AllocatedBySlurm, Holders: []Holder{}},
	AllocationNote{T: 10, Since: 9, UUID: "GPU-x", By: AllocatedByProcesses, Holders: []Holder{{PIDs: []int{4}, Inside: []PIDInside{{PID: 1, Namespace: 4026532999}}}}},
	FunctionsNote{First: 1, Names: []string{"train.py:read", "train.py:Photos.decode"}},
	CallsNote{First: 1, Calls: [][2]uint32{{0, 1}, {1, 2}}},
	TransformsNote{First: 0, Names: []string{"torchvision/transforms/transforms:RandomCrop"}},
	AllocationNote{T: 11, Since: 10, UUID: "GPU-x", By: AllocatedBySlurm, Holders: nil},
}

// every returns the notes of all lists.
func every(n Notes) (all []Note) {
	lists := reflect.ValueOf(n)
	for i := range lists.NumField() {
		if list := lists.Field(i); list.Kind() == reflect.Slice {
			for j := range list.Len() {
				all = append(all, list.Index(j).Interface().(Note))
			}
		}
	}
	return all
}

func contains(n Notes, want Note) bool {
	return slices.ContainsFunc(every(n), func(got Note) bool { return reflect.DeepEqual(got, want) })
}

func TestOddNotesAreCountedNotGuessed(t *testing.T) {
	for _, c := range []struct {
		name, note   string
		bad, unknown uint64
	}{
		{"not JSON", `{"note":`, 1, 0},
		{"not an object", `[1,2]`, 1, 0},
		{"null", `null`, 1, 0},
		{"no name", `{"a":1}`, 1, 0},
		{"name is a number", `{"note":4}`, 1, 0},
		{"later version", `{"note":"weather","rain":true}`, 0, 1},
		{"unknown key", `{"note":"clock","monotonic":1,"realtime":2,"leap":true}`, 0, 0},
		{"half a clock pair", `{"note":"clock","monotonic":1}`, 1, 0},
		{"clock of text", `{"note":"clock","monotonic":"x","realtime":2}`, 2, 0},
		{"loader beyond the table", `{"note":"sums","loader":70000}`, 2, 0},
		{"negative", `{"note":"lost","records":-1,"torn":0}`, 2, 0},
		{"leg by number", `{"note":"leg-skipped","leg":4,"reason":"r"}`, 0, 0},
		{"no such leg", `{"note":"leg-skipped","leg":"warm","reason":"r"}`, 2, 0},
		{"arguments of text", `{"note":"loader","loader":0,"arguments":"x"}`, 1, 0},
		{"workers of text", `{"note":"loader","loader":0,"arguments":{"num_workers":"x","batch_size":3}}`, 1, 0},
		{"null arguments", `{"note":"loader","loader":0,"arguments":null,"length":null}`, 0, 0},
	} {
		n := decodeNotes(c.note)
		if n.Bad != c.bad || n.Unknown != c.unknown {
			t.Errorf("%s: bad %d, unknown %d; want %d, %d", c.name, n.Bad, n.Unknown, c.bad, c.unknown)
		}
	}
}

func TestOneBadFieldLeavesTheOthersKnown(t *testing.T) {
	n := decodeNotes(`{"note":"loader","loader":3,"length":"many","arguments":{"num_workers":"x","batch_size":32}}`)
	if len(n.Loaders) != 1 {
		t.Fatalf("got %+v", n)
	}
	l := n.Loaders[0]
	if batch, ok := l.Arguments.BatchSize.Get(); l.Loader != 3 || !ok || batch != 32 {
		t.Errorf("loader %+v", l)
	}
	if l.Length.IsKnown() || l.Arguments.Workers.IsKnown() {
		t.Errorf("a field of the wrong type became known: %+v", l)
	}
}
