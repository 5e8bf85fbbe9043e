package report

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
	"github.com/datawait/datawait/report/terminal"
)

// run is a recording of a minute on one GPU, in which a process may train. Times are seconds after its begin.
type run struct {
	note    recording.GPUNote
	window  func(second int, w *recording.GPU, p *recording.GPUPipes) bool // false = the window is missing
	state   func(second int, v *recording.GPUState)
	looks   map[int]int // processes found at a time
	events  []recording.GPUEvent
	holders *recording.AllocationNote
	wait    float64 // s of every step of 0.1 s; below 0 = nobody trains
}

const (
	runBegin   = 1_000_000_000
	runSeconds = 60
)

func clockAt(second float64) uint64 { return runBegin + uint64(second*1e9) }

var unread = float32(math.NaN())

// result analyses the recording.
func (c run) result(t *testing.T) *analysis.Result {
	t.Helper()
	m := recording.NewMemory(recording.Manifest{Format: recording.Format, Host: "node0", Command: []string{"python", "train.py"}, StartedMonotonic: runBegin,
		EndedMonotonic: unit.Some(clockAt(runSeconds)), EndedAt: unit.Some(time.Unix(60, 0)), EndedBy: unit.Some(recording.EndedByCommand), Hook: recording.HookSummary{Attached: true, Spools: 1}})
	declare := func(d recording.Declaration) recording.StreamID {
		id, err := m.Declare(d)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	agent := declare(recording.Declaration{Producer: recording.ProducerAgent, Host: "node0"})
	if c.note.UUID == "" {
		c.note.UUID = "GPU-11112222-3"
	}
	if c.note.Source == "" {
		c.note.Source, c.note.Grade = "dcgm", "A"
	}
	m.AddNote(agent, c.note)
	if c.holders != nil {
		c.holders.UUID = c.note.UUID
		m.AddNote(agent, *c.holders)
	}
	for s := range runSeconds {
		c.second(m, agent, s)
	}
	for _, e := range c.events {
		m.Add(agent, e.Encode())
	}
	if c.wait >= 0 {
		c.train(m, declare(recording.Declaration{Producer: recording.ProducerMain, Host: "node0", PID: 7, Rank: new(int), GPUUUID: &c.note.UUID}))
	}
	r, err := analysis.Run([]recording.Reader{m}, analysis.Options{HourCost: 60})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (c run) second(m *recording.Memory, agent recording.StreamID, s int) {
	begin, end := clockAt(float64(s)), clockAt(float64(s+1))
	if c.window != nil {
		w := recording.GPU{Begin: begin, End: end, SM: unread, Resident: unread, Tensor: unread, DRAM: unread, Copy: unread, Power: unread, SMClock: unread, Memory: unread}
		p := recording.GPUPipes{Begin: begin, End: end, Engine: unread, Occupancy: unread, FP32: unread, PCIeIn: unread, PCIeOut: unread, NVLinkIn: unread, NVLinkOut: unread}
		if c.window(s, &w, &p) {
			m.Add(agent, w.Encode(), p.Encode())
		}
	}
	if c.state != nil {
		v := recording.GPUState{Begin: begin + 1, End: end, Power: unread, PowerLimit: unread, SMClock: unread, SMClockMax: unread, MemoryUsed: unread, MemoryAll: unread,
			Reasons: recording.Unknown32, Link: recording.Unknown32, Resident: unread}
		c.state(s, &v)
		m.Add(agent, v.Encode())
	}
	if n, ok := c.looks[s]; ok {
		before := clockAt(float64(max(0, s-10)))
		for i := range max(1, n) {
			pid := uint32(0)
			if n > 0 {
				pid = uint32(100 + i)
			}
			m.Add(agent, recording.GPUProcess{Begin: before, End: begin, PID: pid, Memory: recording.Unknown64}.Encode())
		}
	}
}

func (c run) train(m *recording.Memory, id recording.StreamID) {
	const step = 0.1
	for b := range int(runSeconds/step) - 1 {
		enter := float64(b) * step
		flags := uint8(0)
		if b == 0 {
			flags = recording.FetchFirst
		}
		m.Add(id, recording.Fetch{Flags: flags, Enter: clockAt(enter), Exit: clockAt(enter + c.wait), Batch: uint32(b), Step: uint32(b), Thread: 1, CPU: recording.Unknown64, Ready: recording.Unknown32}.Encode(),
			recording.Step{Begin: recording.Unknown64, End: clockAt(enter + step), Step: uint32(b + 1), Thread: 1, CPU: recording.Unknown64}.Encode())
	}
}

// counts makes windows of the same counters.
func counts(sm, resident float32) func(int, *recording.GPU, *recording.GPUPipes) bool {
	return func(_ int, w *recording.GPU, _ *recording.GPUPipes) bool {
		w.SM, w.Resident = sm, resident
		return true
	}
}

// idleWords are those in which a GPU is called idle.
const idleWords = "Allocated, not used|had nothing to run|no process held|no rank uses"

func everyTenSeconds(n int) map[int]int { return map[int]int{0: n, 10: n, 20: n, 30: n, 40: n, 50: n} }

// joined are the lines of a screen joined, paragraphs apart.
func joined(screen string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(screen, "\n\n", " | ")), " ")
}

// What counters cannot have meant is said, in the words a reader meets; no GPU is called idle, and none well used, on numbers that
// contradict themselves, are missing, or are those of others (scenarios §2; what is known to go wrong with GPU counters).
func TestWhatCountersCannotMeanIsSaid(t *testing.T) {
	after31 := counts(0, 1)
	for _, c := range []struct {
		name      string
		run       run
		says      []string // regular expressions, on the screen
		never     []string
		untrusted bool
	}{
		{name: "M1: a kernel always there, few SMs at work", run: run{window: counts(0.10, 1), wait: 0.0005, state: func(_ int, v *recording.GPUState) { v.Power, v.PowerLimit, v.Resident, v.Reasons = 140, 400, 1, 0 }},
			says: []string{`\| Launch-bound`, `resident █+ 100 %`, `SM active █+ 10 %`}, never: []string{idleWords, "pipeline keeps up", "mixed precision"}},
		{name: "GPU-util 100 beside SM activity of one warp", run: run{window: counts(0.0076, 1), wait: 0.0005},
			says: []string{`resident █+ 100 %`, `SM active [▎▍] 1 %`}, never: []string{"not trusted"}},
		{name: "M2: GPU-util of a slice reads 0, its engine 0.6", run: run{note: recording.GPUNote{UUID: "MIG-1", Parent: "GPU-9", GI: unit.Some[int64](1), CI: unit.Some[int64](0)}, wait: 0.0005,
			window: func(_ int, w *recording.GPU, p *recording.GPUPipes) bool {
				w.SM, w.Resident, p.Engine = 0.55, 0, 0.6
				return true
			}}, says: []string{`resident █+ 60 %`, `60 % C`, `a slice of GPU-9`, `a part of a GPU`}, never: []string{idleWords, "not trusted"}},
		{name: "M3: SM activity above 1 on a slice", run: run{note: recording.GPUNote{UUID: "MIG-1", Parent: "GPU-9"}, window: counts(1.294, unread), wait: 0.0005},
			says: []string{"Counters not trusted: 100 % of the GPU counter windows contradict themselves"}, untrusted: true},
		{name: "M3: 2³²−1", run: run{window: counts(4294967295, 1), wait: 0.0005}, untrusted: true},
		{name: "M3: 2⁶³−1", run: run{window: counts(9223372036854775807, 1), wait: 0.0005}, untrusted: true},
		{name: "a pause of the counters: 2⁴⁷", run: run{window: counts(140737488355328, 0.5), wait: 0.0005}, untrusted: true},
		{name: "M3: not a number", run: run{window: counts(unread, 0.5), wait: 0.0005}, says: []string{"SM activity unknown", "resident [^a-z]*50 %"}, never: []string{idleWords, "not trusted"}},
		{name: "after Xid 31 counters read 0 beside GPU-util 100", run: run{window: after31, wait: 0.0005, events: []recording.GPUEvent{{T: clockAt(3), Code: recording.GPUEventXid, Value: 31}}},
			says: []string{"Counters not trusted", `Xid 31`}, untrusted: true},
		{name: "the same while nobody trains", run: run{window: after31, wait: -1}, says: []string{"No training step was seen", "Counters not trusted"}, untrusted: true},
		{name: "M5: three pods on one GPU", run: run{window: counts(0.714, 0.9), wait: 0.0005, holders: &recording.AllocationNote{T: runBegin, By: recording.AllocatedByKubernetes, Shared: recording.SharedTimeSlicing,
			Holders: []recording.Holder{{Namespace: "a", Pod: "x"}, {Namespace: "a", Pod: "y"}, {Namespace: "a", Pod: "z"}}}},
			says:  []string{`SM active [^a-z]*71 %`, `shared \(time-slicing\), so its numbers are of all its holders together, and of none of them alone`, `what the allocated time cost is unknown: the GPU is shared`},
			never: []string{"214 %", "3 GPUs", "Launch-bound"}},
		{name: "M6: in use, no process, no steps", run: run{wait: -1, looks: everyTenSeconds(0), note: recording.GPUNote{Source: "nvml", Grade: "C", Why: "NVML tells whether a kernel is resident"},
			state: func(_ int, v *recording.GPUState) { v.Resident, v.MemoryUsed = 1, 10e9 }},
			says: []string{"no process is listed that holds it: a context was left behind", `\| In use by nobody who is listed`}, never: []string{"held 0 %", idleWords}},
		{name: "held, and nothing to run, no steps", run: run{wait: -1, looks: everyTenSeconds(1), window: counts(0, 0)}, says: []string{`\| Allocated, not used`}, never: []string{"not trusted"}},
		{name: "counters that stop halfway", run: run{wait: 0.0005, window: func(s int, w *recording.GPU, _ *recording.GPUPipes) bool {
			w.SM, w.Resident = 0.8, 1
			return s < 27
		}}, says: []string{`SM active [^a-z]*80 %`, "80 % C", `45 %`, `SM active unknown`, "it was measured in 45 % of the allocated time"}, never: []string{idleWords}},
		{name: "four in five samples lost", run: run{wait: 0.0005, window: func(s int, w *recording.GPU, _ *recording.GPUPipes) bool {
			w.SM, w.Resident = 0.8, 1
			return s%5 == 0
		}}, says: []string{`counters cover 20 %`, "80 % C"}, never: []string{"16 %", idleWords}},
		{name: "one field alone is not there", run: run{wait: 0.0005, window: counts(0.8, 1)}, says: []string{`tensor unknown`}, never: []string{"tensor 0 %"}},
		{name: "one spinning kernel of a collective", run: run{wait: 0.06, window: counts(0.15, 1)}, says: []string{`15 %`}, never: []string{"Launch-bound", "launch-bound:"}},
		{name: "windows of one second where a tenth was asked for", run: run{wait: 0.0005, note: recording.GPUNote{UUID: "GPU-1", Source: "dcgm", Grade: "A", Interval: unit.Some[uint64](100e6)}, window: counts(0.8, 1)},
			says: nil, never: []string{"not trusted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.run.result(t)
			var b bytes.Buffer
			if err := Terminal(&b, r, terminal.Options{}); err != nil {
				t.Fatal(err)
			}
			screen := b.String()
			for _, s := range c.says {
				if !regexp.MustCompile(s).MatchString(joined(screen)) {
					t.Errorf("%q is not said", s)
				}
			}
			never := c.never
			if c.untrusted {
				never = append([]string{idleWords, `SM active 0 %`, `SM active 100 %`, "Launch-bound", "of which"}, never...)
			}
			for _, s := range never {
				if regexp.MustCompile(s).MatchString(joined(screen)) {
					t.Errorf("%q is said", s)
				}
			}
			for _, g := range r.GPUs {
				if c.untrusted && (g.SMActiveRatio.IsKnown() || g.Untrusted.Or(0) != 1) {
					t.Errorf("SM activity %+v, untrusted %v", g.SMActiveRatio, g.Untrusted.Or(-1))
				}
			}
			if t.Failed() {
				t.Log(screen)
			}
			if files, err := Render(r, []Format{JSON, HTML}); err != nil || len(files) != 2 {
				t.Errorf("%d files, %v", len(files), err)
			}
		})
	}
}

// Counters in windows that nobody asked for are told as what they are.
func TestWindowsThatAreNotThoseAskedFor(t *testing.T) {
	c := run{wait: 0.0005, note: recording.GPUNote{UUID: "GPU-1", Source: "dcgm", Grade: "A", Interval: unit.Some[uint64](100e6)}, window: counts(0.8, 1)}
	if w := strings.Join(c.result(t).Quality.Warnings, "\n"); !strings.Contains(w, "windows are 1 s long where 0.1 s were asked for") {
		t.Errorf("warnings %q", w)
	}
	c.note.Interval = unit.Some[uint64](1000e6)
	if w := strings.Join(c.result(t).Quality.Warnings, "\n"); strings.Contains(w, "asked for") {
		t.Errorf("warnings %q", w)
	}
}
