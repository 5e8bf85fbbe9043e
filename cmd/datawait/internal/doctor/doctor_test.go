package doctor

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/interpreter"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

func find(t *testing.T, all []Finding, id string) Finding {
	t.Helper()
	for _, f := range all {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no finding %s in %+v", id, all)
	return Finding{}
}

// trainer is a Python with this PyTorch.
func trainer(torch string) python {
	return python{Python: interpreter.Python{Path: "/opt/python3", Version: "3.11.2", Torch: torch}}
}

func TestAHookThatIsKeptOutIsMissingWithItsReason(t *testing.T) {
	p := trainer("2.6.0")
	s := seen{job: recording.JobNote{KeptOut: []recording.KeptOut{{Why: recording.KeptOutNoPath}, {Why: recording.KeptOutNoPath}}}}
	f := find(t, lookAtJob(p, s), "hook")
	if f.State != Missing || f.Grade != "" || strings.Count(f.Says, "launcher drops") != 1 || !strings.Contains(f.Raise, "PYTHONPATH") {
		t.Errorf("%+v", f)
	}
	s = seen{job: recording.JobNote{Refused: []string{"spool /x is on NFS"}}}
	if f := find(t, lookAtJob(p, s), "hook"); !strings.Contains(f.Says, "on NFS") {
		t.Errorf("%+v", f)
	}
}

func TestAHookThatSeesNoWorkerIsLimited(t *testing.T) {
	s := seen{fetches: 30}
	if f := find(t, lookAtJob(trainer("2.6.0"), s), "hook"); f.State != Limited {
		t.Errorf("%+v", f)
	}
	if f := find(t, lookAtJob(trainer(""), s), "hook"); f.State != Good {
		t.Errorf("without PyTorch there is no worker to see: %+v", f)
	}
}

func TestAQueueThatWasNotReadIsNeverGood(t *testing.T) {
	for torch, want := range map[string]State{"": Missing, "2.6.0": Limited} {
		if f := find(t, lookAtJob(trainer(torch), seen{}), "run-queue"); f.State != want {
			t.Errorf("PyTorch %q: %+v", torch, f)
		}
	}
}

// Every gap that a host note names becomes a finding; what explains a known number is none.
func TestGapsOfTheMachineAreFindings(t *testing.T) {
	s := seen{usable: 4, host: recording.HostNote{Why: map[string]string{"usable": "least of …", "pressure": "no file", "received bytes": "no netlink"}},
		sources: map[string]string{"host/disks": "no sysfs", "gpu": "not the machine's"}}
	all := lookAtMachine(s)
	if len(all) != 4 || all[0].State != Good || all[1].Raise != "boot with psi=1" || !strings.HasPrefix(all[2].Raise, "modprobe tcp_diag") || all[3].State != Missing {
		t.Errorf("%+v", all)
	}
	s.usable = float32(math.NaN())
	if all := lookAtMachine(s); all[0].State != Limited || !strings.Contains(all[0].Says, "least of") {
		t.Errorf("%+v", all[0])
	}
}

// A shared engine samples at our pace for everybody; nothing of the kind is said of other sources.
func TestWhatOurWatchDoesToOthersIsSaid(t *testing.T) {
	g := watched{GPUNote: recording.GPUNote{Source: "dcgm", Grade: "A", Interval: unit.Some(uint64(1e8))}, windows: 9, known: 9, length: 9e8}
	if f := find(t, lookAtGPUs(gpusource.Choice{}, seen{gpus: []watched{g}}), "engine"); !strings.Contains(f.Says, "every 100ms for all its clients") {
		t.Errorf("%+v", f)
	}
	g.Source = "nvml-gpm"
	for _, f := range lookAtGPUs(gpusource.Choice{}, seen{gpus: []watched{g}}) {
		if f.ID == "engine" {
			t.Errorf("%+v", f)
		}
	}
}

func TestABinaryThatBindsAtTheStartIsLimited(t *testing.T) {
	for _, c := range []struct {
		variable string
		now      bool
		want     State
	}{{"", false, Good}, {"1", false, Good}, {"", true, Limited}, {"1", true, Limited}} {
		if f := binding(c.variable, c.now); f.State != c.want || (c.want == Limited) != (f.Raise != "") {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

func TestNoLineIsWiderThanAsked(t *testing.T) {
	d := Document{Machine: "m", Platform: "p", Findings: []Finding{{ID: "gpu", Subject: GPUs, State: Limited, Grade: "C",
		Says: strings.Repeat("word ", 60), Raise: strings.Repeat("do it ", 30)}}}
	var b strings.Builder
	if err := d.Write(&b, Layout{Width: 60}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 && strings.Contains(line, "word") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("colour was not asked for")
	}
}

// reads makes windows of this SM activity and looks of a driver that found kernels there for this share of the time.
func reads(sm, resident float32) (records []recording.Record) {
	for i := range uint64(5) {
		records = append(records, recording.GPU{Begin: i * 1e8, End: (i + 1) * 1e8, SM: sm}.Encode(),
			recording.GPUState{Begin: i * 1e9, End: (i + 1) * 1e9, Resident: resident}.Encode())
	}
	return records
}

// Nothing stands in for SM activity where nobody tells GPU-util, as of a slice; and counters that read nothing while kernels are there
// are not called good: a report would not believe them.
func TestWhatIsSaidOfAGPUIsWhatAReportWillHave(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		sm, resident float32
		state        State
		grade, says  string
	}{
		"works":                    {0.4, 1, Good, "A", "SM activity from nvml-gpm, 5 windows of 100ms"},
		"idle":                     {0, 0, Good, "A", "SM activity from nvml-gpm"},
		"stopped":                  {0, 1, Limited, "", "the counters have stopped"},
		"counted, without a util":  {0, nan, Good, "A", "SM activity from nvml-gpm"},
		"not counted, with a util": {nan, 0.5, Limited, "C", "GPU-util stands in for it"},
		"neither":                  {nan, nan, Missing, "", "SM activity is not measured: no luck"},
	} {
		s := seen{gpus: []watched{{GPUNote: recording.GPUNote{UUID: "GPU-a", Source: "nvml-gpm", Grade: "A"}}}}
		if c.sm != c.sm {
			s.gpus[0].Why = "no luck"
		}
		records := reads(c.sm, c.resident)
		for i := range records {
			s.record(&records[i], map[uint16]int{0: 0})
		}
		f := find(t, lookAtGPUs(gpusource.Choice{}, s), "gpu")
		if f.State != c.state || f.Grade != c.grade || !strings.Contains(f.Says, c.says) || c.grade != "C" && strings.Contains(f.Says, "stands in") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
