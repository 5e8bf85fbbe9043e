package scrape

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

const (
	second = uint64(time.Second)
	gpu0   = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	gpu1   = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
)

func fixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// exporter is one whose page a test writes.
type exporter struct {
	*httptest.Server
	page  string
	looks int
}

func serve(t *testing.T, page string) *exporter {
	e := &exporter{page: page}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.looks++
		io.WriteString(w, e.page)
	}))
	t.Cleanup(e.Close)
	return e
}

func open(t *testing.T, e *exporter, partly bool) *Source {
	t.Helper()
	s, err := Open(context.Background(), Options{URL: e.URL, Partly: partly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func parsed(t *testing.T, text string) *page {
	t.Helper()
	p, err := read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(a float32, b float64) bool { return math.Abs(float64(a)-b) < 1e-6*max(1, math.Abs(b)) }

// Pages of a real exporter, plain, with labels of Kubernetes old and new, and with jobs.
func TestPagesOfEveryKindAreRead(t *testing.T) {
	pod := []recording.Holder{{Namespace: "team-a", Pod: "train-0", Container: "trainer"}}
	for _, c := range []struct {
		file    string
		holders [2][]recording.Holder
	}{
		{"dcgm-exporter-h100x2.prom", [2][]recording.Holder{}},
		{"dcgm-exporter-h100x2-k8s.prom", [2][]recording.Holder{pod, nil}},
		{"dcgm-exporter-h100x2-k8s-oldns.prom", [2][]recording.Holder{pod, nil}},
		{"dcgm-exporter-h100x2-hpc.prom", [2][]recording.Holder{{{Job: "4711"}}, {{Job: "4712"}}}},
	} {
		p := parsed(t, fixture(t, c.file))
		if len(p.order) != 2 || p.order[0] != (entity{gpu0, -1}) || p.order[1] != (entity{gpu1, -1}) || p.rejected != 0 {
			t.Errorf("%s: GPUs %v, %d rejected", c.file, p.order, p.rejected)
			continue
		}
		for i, at := range p.order {
			g := p.gpus[at]
			if got, want := g.values[fieldSM], []float64{0.25, 0.75}[i]; got != want || g.index != i || g.name != "NVIDIA H100 80GB HBM3" {
				t.Errorf("%s: GPU %d (%d, %q) has SM activity %v", c.file, i, g.index, g.name, got)
			}
			if fmt.Sprint(g.holders) != fmt.Sprint(c.holders[i]) {
				t.Errorf("%s: GPU %d is held by %v, want %v", c.file, i, g.holders, c.holders[i])
			}
		}
	}
	if g := parsed(t, fixture(t, "synthetic-a100-old-labels.prom")).gpus[entity{"GPU-00000000-0000-4000-8000-000000000001", -1}]; g.values[fieldSM] != 0.061204 || g.values[fieldUtil] != 1 {
		t.Errorf("old labels: %v", g.values)
	}
}

func TestUnitsAreThoseOfRecords(t *testing.T) {
	e := serve(t, fixture(t, "dcgm-exporter-h100x2.prom"))
	s := open(t, e, false)
	w, p := firstWindow(t, e, s)
	for name, ok := range map[string]bool{
		"SM": near(w.SM, 0.25), "resident": near(w.Resident, 0.87), "tensor": near(w.Tensor, 0.4), "DRAM": near(w.DRAM, 0.33), "copy": w.Copy != w.Copy,
		"clock": near(w.SMClock, 1980e6), "memory": near(w.Memory, 20389<<20), "engine": near(p.Engine, 0.9), "occupancy": near(p.Occupancy, 0.125),
		"fp32": near(p.FP32, 0.02), "PCIe in": near(p.PCIeIn, 209715200), "PCIe out": p.PCIeOut >= 104857600,
		"NVLink in": near(p.NVLinkIn, 314572800), "NVLink out": near(p.NVLinkOut, 419430400), "trusted": w.Flags == 0,
	} {
		if !ok {
			t.Errorf("%s: %+v %+v", name, w, p)
		}
	}
}

// firstWindow lets the power of the first GPU change every 30 s until a window of it ends.
func firstWindow(t *testing.T, e *exporter, s *Source) (recording.GPU, recording.GPUPipes) {
	t.Helper()
	page := e.page
	for now := second; now < 200*second; now += second {
		e.page = strings.ReplaceAll(page, " 104857600\n", fmt.Sprintf(" %d\n", 104857600+now/second/30)) // what it sends over PCIe
		b, err := s.Sample(context.Background(), now)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Windows) > 0 && len(b.Pipes) > 0 {
			return b.Windows[0], b.Pipes[0]
		}
	}
	t.Fatal("no window ended")
	return recording.GPU{}, recording.GPUPipes{}
}

// line is a metric of GPU 0.
func line(name string, value any, labels ...string) string {
	all := append([]string{`gpu="0"`, `UUID="` + gpu0 + `"`}, labels...)
	return fmt.Sprintf("%s{%s} %v\n", name, strings.Join(all, ","), value)
}

const sm, power, energy = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"

// played samples a page that is a function of the second, once a second, and returns the windows and how often it was looked.
func played(t *testing.T, seconds int, at func(s int) string) ([]recording.GPU, int, []gpu.Failure) {
	t.Helper()
	e := serve(t, at(0))
	s := open(t, e, false)
	e.looks = 0
	var all []recording.GPU
	var failures []gpu.Failure
	for i := range seconds {
		e.page = at(i)
		b, err := s.Sample(context.Background(), uint64(i+1)*second)
		if err != nil {
			t.Fatal(err)
		}
		all, failures = append(all, b.Windows...), b.Failures
	}
	return all, e.looks, failures
}

// A repeated value is no sample: windows cover what was collected, to a look, and each value once.
func TestEachCollectionIsOneWindow(t *testing.T) {
	windows, looks, _ := played(t, 300, func(s int) string {
		n := s / 30
		return line(sm, 0.1+float64(n)/100) + line(energy, 1000*(n+1))
	})
	if len(windows) != 8 { // collections at 30 … 270; the first has no beginning
		t.Fatalf("%d windows: %+v", len(windows), windows)
	}
	for i, w := range windows {
		n := i + 2
		if !near(w.SM, 0.1+float64(n)/100) {
			t.Errorf("window %d reads %v, want that of collection %d", i, w.SM, n)
		}
		late := float64(w.End)/1e9 - float64(30*n+1)
		if length := float64(w.End-w.Begin) / 1e9; late < 0 || late > 4 || length < 26 || length > 34 {
			t.Errorf("window %d is %v late and %v long", i, late, length)
		}
		if i > 0 && w.Begin < windows[i-1].End {
			t.Errorf("window %d overlaps the one before", i)
		}
	}
	if looks > 160 {
		t.Errorf("the page was asked for %d times in 300 s", looks)
	}
}

// The fields of one collection may arrive a second apart.
func TestACollectionThatArrivesInPartsIsOneSample(t *testing.T) {
	windows, _, _ := played(t, 200, func(s int) string {
		return line(sm, 0.1+float64((s+30)/30)/100) + line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.1+float64((s+29)/30)/100) + line(power, 300+(s+30)/30)
	})
	for i, w := range windows {
		if w.SM != w.Tensor {
			t.Errorf("window %d that ends at %v reads %v and %v", i, w.End/second, w.SM, w.Tensor)
		}
		if length := (w.End - w.Begin) / second; length < 25 || length > 35 {
			t.Errorf("window %d is %d s long", i, length)
		}
	}
	if len(windows) < 3 {
		t.Errorf("%d windows", len(windows))
	}
}

// While nothing changes nothing is known: neither that the GPU is idle, nor that it goes on.
func TestValuesThatStayTheSameCoverNoTime(t *testing.T) {
	windows, _, failures := played(t, 200, func(int) string { return line(sm, 0.5) + line(power, 300) })
	if len(windows) != 0 || len(failures) != 1 || !strings.Contains(failures[0].Why, "repeats its old values") {
		t.Errorf("%v %v", windows, failures)
	}
}

// Another client may let the engine read power every second; the counters beside it are still those of half a minute ago.
func TestAFieldThatIsReadMoreOftenMakesNoSamples(t *testing.T) {
	windows, _, _ := played(t, 300, func(s int) string {
		return line(sm, 0.1+float64(s/30)/100) + line(power, 300+s) + line(energy, 1000+s)
	})
	for i, w := range windows {
		n := i + 2
		if length := (w.End - w.Begin) / second; !near(w.SM, 0.1+float64(n)/100) || length < 25 || length > 35 {
			t.Errorf("window %d reads %v and is %d s long", i, w.SM, length)
		}
	}
	if len(windows) != 8 {
		t.Errorf("%d windows", len(windows))
	}
}

// An idle GPU's counters read 0 every time, and its energy shows that they are new.
func TestAnIdleGPUIsSeenIdle(t *testing.T) {
	windows, _, failures := played(t, 200, func(s int) string { return line(sm, "0.000000") + line(energy, 1000*(s/30+1)) })
	if len(windows) < 4 || windows[0].SM != 0 || len(failures) != 0 {
		t.Errorf("%+v %v", windows, failures)
	}
}

// A collection that was missed is not covered by the next.
func TestAfterAGapAWindowIsAsLongAsUsual(t *testing.T) {
	windows, _, _ := played(t, 400, func(s int) string {
		n := s / 30
		if n >= 5 && n < 8 {
			n = 5
		}
		return line(sm, 0.1+float64(n)/100) + line(energy, 1000*(n+1))
	})
	covered := uint64(0)
	for _, w := range windows {
		if length := (w.End - w.Begin) / second; length > 35 {
			t.Errorf("a window of %d s: %+v", length, w)
		}
		covered += (w.End - w.Begin) / second
	}
	if covered < 280 || covered > 315 { // from 30 to 390 s, of which 60 s are missing
		t.Errorf("%d s are covered", covered)
	}
}

// Without an energy counter a value may have stayed the same from one collection to the next; only the second distance is believed.
func TestTheFirstDistanceCountsOnlyWhereEveryCollectionShows(t *testing.T) {
	busyLater := func(s int) string { // collections every 10 s; nothing changes between 10 and 60
		v := []float64{0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.8, 0.9, 0.8}[s/10]
		return line(sm, v)
	}
	windows, _, _ := played(t, 100, busyLater)
	for _, w := range windows {
		if w.End-w.Begin > 13*second {
			t.Errorf("a window of %d s", (w.End-w.Begin)/second)
		}
	}
}

func TestPodsThatShareAGPUAreOneGPU(t *testing.T) {
	copies := func(name string, values ...any) (text string) {
		for i, v := range values {
			text += line(name, v, fmt.Sprintf(`pod="p%d",namespace="ml",container="c",vgpu="%d"`, i, i))
		}
		return text
	}
	for _, c := range []struct {
		name, text string
		sm, util   float64
		rejected   uint64
	}{
		{"copies", copies(sm, 0.714, 0.714, 0.714), 0.714, math.NaN(), 0},
		{"the GPU's own beside copies", copies("DCGM_FI_DEV_GPU_UTIL", 10, 20) + line("DCGM_FI_DEV_GPU_UTIL", 30) + line(sm, 0.5) + copies(sm, 0.5, 0.5), 0.5, 0.3, 1},
		{"the GPU's own before copies", line("DCGM_FI_DEV_GPU_UTIL", 30) + copies("DCGM_FI_DEV_GPU_UTIL", 10, 20), math.NaN(), 0.3, 0},
		{"copies that differ are processes'", copies("DCGM_FI_DEV_GPU_UTIL", 10, 20, 10) + copies(sm, 0.5, 0.5), 0.5, math.NaN(), 1},
		{"two values of the GPU itself", line(sm, 0.2) + line(sm, 0.3), math.NaN(), math.NaN(), 1},
		{"one value twice", line(sm, 0.2) + line(sm, 0.2), 0.2, math.NaN(), 0},
	} {
		p := parsed(t, c.text)
		g := p.gpus[entity{gpu0, -1}]
		if len(p.gpus) != 1 || !alike(g.values[fieldSM], c.sm) || !alike(g.values[fieldUtil], c.util) || p.rejected != c.rejected {
			t.Errorf("%s: %d GPUs, %v, %d rejected", c.name, len(p.gpus), g.values, p.rejected)
		}
	}
	e := serve(t, copies(sm, 0.5, 0.5))
	b, err := open(t, e, false).Sample(context.Background(), second)
	if err != nil || len(b.Holders) != 1 || len(b.Holders[0].Holders) != 2 || b.Holders[0].Shared != recording.SharedReplicas {
		t.Errorf("%+v %v", b.Holders, err)
	}
}

func alike(a, b float64) bool { return a == b || a != a && b != b }

func TestSlicesAreDevicesOfTheirGPU(t *testing.T) {
	slice := func(gi, value string) string { return line(sm, value, `GPU_I_PROFILE="3g.20gb",GPU_I_ID="`+gi+`"`) }
	e := serve(t, slice("1", "0.1")+slice("2", "0.9")+slice("x", "0.5"))
	devices, _ := open(t, e, false).Devices(context.Background())
	if len(devices) != 2 || devices[0].Identity != (gpu.Identity{Parent: gpu0, GI: 1, CI: -1}) || devices[1].GI != 2 {
		t.Errorf("%+v", devices)
	}
}

func TestWhatIsNotTrueIsNotAValue(t *testing.T) {
	for _, v := range []string{"NaN", "+Inf", "-Inf", "-1", "9223372036854775794", "140737488355328", "2147483632", "4294967295"} {
		p := parsed(t, line(sm, v)+line("DCGM_FI_DEV_GPU_UTIL", v)+line(energy, "1"))
		g := p.gpus[entity{gpu0, -1}]
		if g.values[fieldSM] == g.values[fieldSM] || g.values[fieldUtil] == g.values[fieldUtil] || (p.rejected == 0) != (v == "NaN") {
			t.Errorf("%s: %v, %d rejected", v, g.values, p.rejected)
		}
	}
}

func TestARatioAboveOneMakesAWindowUntrusted(t *testing.T) {
	windows, _, _ := played(t, 100, func(s int) string { return line(sm, 1.294+float64(s/10)/1000) + line(energy, s/10+1) })
	if len(windows) == 0 || windows[0].Flags != recording.GPUUntrusted {
		t.Errorf("%+v", windows)
	}
}

func TestAStockExporterIsToldTheLinesItLacks(t *testing.T) {
	stock := strings.ReplaceAll(strings.ReplaceAll(fixture(t, "dcgm-exporter-h100x2.prom"), "SM_ACTIVE", "X_ACTIVE"), "SM_OCCUPANCY", "X_OCCUPANCY")
	for _, c := range []struct{ name, page, why string }{
		{"as shipped", stock, "lacks SM activity; these lines add it: DCGM_FI_PROF_SM_ACTIVE, gauge,"},
		{"without profiling", line("DCGM_FI_DEV_GPU_UTIL", 50), "no profiling counter at all"},
		{"of one GPU only", line(sm, 0.5) + strings.ReplaceAll(line(power, 300), gpu0, gpu1), "none of this one"},
	} {
		e := serve(t, c.page)
		devices, _ := open(t, e, true).Devices(context.Background())
		d := devices[len(devices)-1]
		if !strings.Contains(d.Missing, c.why) || !d.Partly {
			t.Errorf("%s: %+v", c.name, d)
		}
		if devices, _ := open(t, e, false).Devices(context.Background()); devices[len(devices)-1].Partly {
			t.Errorf("%s: taken although nobody asked for a part", c.name)
		}
	}
}

func TestWhatIsThereWithoutSMActivityIsRead(t *testing.T) {
	e := serve(t, strings.ReplaceAll(fixture(t, "dcgm-exporter-h100x2.prom"), "SM_ACTIVE", "X_ACTIVE"))
	w, p := firstWindow(t, e, open(t, e, true))
	if w.SM == w.SM || !near(w.Tensor, 0.4) || !near(w.Resident, 0.87) || !near(p.Engine, 0.9) {
		t.Errorf("%+v %+v", w, p)
	}
}

func TestAnExporterThatCannotBeReadSaysWhy(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		why    string
	}{
		{"empty and healthy", func(http.ResponseWriter, *http.Request) {}, "its page is empty"},
		{"blank", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\n \n") }, "its page is empty"},
		{"somebody else's", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "go_goroutines 7\n") }, "no metric of a GPU"},
		{"a web page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>\n") }, "no metric of a GPU"},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }, "answers 503 Service Unavailable"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "sends to another address (302)"},
		{"broken text", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, sm+"{gpu=\x1b[2J} 1\n") }, "not in Prometheus' text format"},
		{"a million series", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat(line(sm, 0.5), 60000))
		}, "more than 20000 series"},
		{"a million series of something else", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("other_metric{number=\"7\"} 1\n", 1000000))
		}, "longer than 16777216 bytes"},
		{"a line without end", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", 100000))
		}, "a line of more than 16384 bytes"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, line(sm, 0.5))
		}, "unexpected EOF"},
	} {
		server := httptest.NewServer(c.answer)
		_, err := Open(context.Background(), Options{URL: server.URL})
		if err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", c.name, err)
		}
		server.Close()
	}
	if asked != 0 {
		t.Error("a redirect was followed")
	}
	if _, err := Open(context.Background(), Options{URL: "http://" + nobody.Addr().String() + "/metrics"}); err == nil || !strings.Contains(err.Error(), "no exporter listens at") {
		t.Errorf("nobody: %v", err)
	}
}

func TestAnExporterThatHangsIsLeftAlone(t *testing.T) {
	release := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-release
	}))
	defer hang.Close()
	defer close(release)
	e := newEndpoint(hang.URL)
	e.client.Timeout = 50 * time.Millisecond
	if _, err := e.get(context.Background()); err == nil || !strings.Contains(err.Error(), "does not answer within") {
		t.Errorf("%v", err)
	}
}

// A failure is told until it is over, and the exporter is not asked at every turn.
func TestAFailureIsToldUntilItIsOverAndAskedForSeldom(t *testing.T) {
	e := serve(t, line(sm, 0.5))
	s := open(t, e, false)
	e.page, e.looks = "", 0
	for now := second; now <= 60*second; now += second {
		if _, err := s.Sample(context.Background(), now); err == nil {
			t.Fatalf("no failure at %d s", now/second)
		}
	}
	if e.looks > 4 {
		t.Errorf("it was asked %d times in a minute", e.looks)
	}
	e.page = line(sm, 0.5)
	for now := 61 * second; now <= 200*second; now += second {
		if _, err := s.Sample(context.Background(), now); err == nil {
			return
		}
	}
	t.Error("it never recovered")
}

func TestAGPUThatLeavesThePageIsAFailureAndANewOneIsAsked(t *testing.T) {
	other := strings.ReplaceAll(line(sm, 0.5), gpu0, gpu1)
	e := serve(t, line(sm, 0.5))
	s := open(t, e, false)
	if b, err := s.Sample(context.Background(), second); err != nil || b.Changed || len(b.Failures) != 0 {
		t.Errorf("%+v %v", b, err)
	}
	e.page = other
	b, err := s.Sample(context.Background(), 10*second)
	if err != nil || !b.Changed || len(b.Failures) != 1 || b.Failures[0].Ref != 0 || !strings.Contains(b.Failures[0].Why, "does not mention") {
		t.Errorf("%+v %v", b, err)
	}
	if devices, _ := s.Devices(context.Background()); len(devices) != 2 || devices[1].UUID != gpu1 || devices[1].Ref != 1 {
		t.Errorf("%+v", devices)
	}
}

func TestHoldersAreToldWhenTheyChangeAndNoGPUIsCalledFree(t *testing.T) {
	e := serve(t, line(sm, 0.5, `pod="a",namespace="n",container="c"`))
	s := open(t, e, false)
	var told []string
	for i, labels := range []string{`pod="a",namespace="n",container="c"`, `pod="a",namespace="n",container="c"`, `pod="b",namespace="n",container="c"`, `pod=""`, `hpc_job="7"`} {
		e.page = line(sm, 0.5, labels)
		b, err := s.Sample(context.Background(), uint64(i+1)*10*second)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range b.Holders {
			text := "?"
			if len(h.Holders) > 0 {
				text = h.Holders[0].Pod + h.Holders[0].Job
			} else if h.Holders != nil {
				text = "free"
			}
			told = append(told, fmt.Sprintf("%s %d-%d", text, h.Since/second, h.T/second))
		}
	}
	if got := strings.Join(told, ", "); got != "a 10-10, b 20-30, ? 30-40, 7 40-50" {
		t.Error(got)
	}
}

func TestAnErrorThatAppearsIsAnEventAndOneThatWasThereIsNot(t *testing.T) {
	e := serve(t, line(sm, 0.5)+line("DCGM_FI_DEV_XID_ERRORS", 31))
	s := open(t, e, false)
	b, _ := s.Sample(context.Background(), 10*second)
	e.page = line(sm, 0.5) + line("DCGM_FI_DEV_XID_ERRORS", 79)
	c, _ := s.Sample(context.Background(), 20*second)
	if len(b.Events) != 0 || len(c.Events) != 1 || c.Events[0].Code != recording.GPUEventXid || c.Events[0].Value != 79 || c.Events[0].T != 20*second {
		t.Errorf("%+v, %+v", b.Events, c.Events)
	}
}

func TestAnAddressIsAURLOrAHost(t *testing.T) {
	for in, want := range map[string]string{
		"node7:9400": "http://node7:9400/metrics", "http://node7:9400": "http://node7:9400/metrics", "https://n/x?y=1#z": "https://n/x?y=1",
		"127.0.0.1:9400/": "http://127.0.0.1:9400/metrics", "[::1]:9400": "http://[::1]:9400/metrics",
		"ftp://n": "", "http://": "", "http://user:word@n": "", "http://[": "", "file:///etc/passwd": "",
	} {
		if got, err := Address(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", in, got, err)
		}
	}
}

// No environment may turn the request into one to a proxy.
func TestNoProxyIsAsked(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	if p := newEndpoint("http://x").client.Transport.(*http.Transport).Proxy; p != nil {
		t.Error("there is a proxy")
	}
}

func FuzzPage(f *testing.F) {
	for _, name := range []string{"dcgm-exporter-h100x2-k8s.prom", "dcgm-exporter-h100x2-hpc.prom", "synthetic-a100-old-labels.prom"} {
		text := fixture(f, name)
		f.Add(text[:min(len(text), 3000)])
	}
	f.Add(line(sm, "NaN") + line(sm, "1e400") + line(sm, 0.5, `pod="\n\x1b"`) + "\xff{")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := read(strings.NewReader(text))
		if err != nil {
			return
		}
		for at, g := range p.gpus {
			for i, v := range g.values {
				if v < 0 || math.IsInf(v, 0) || i < int(fieldPCIeIn) && v >= 100 {
					t.Errorf("%v: %v", at, g.values)
				}
			}
			for _, h := range g.holders {
				if strings.ContainsAny(h.Pod+h.Job+h.Namespace+h.Container, "\n\x1b") {
					t.Errorf("%+v", h)
				}
			}
		}
	})
}
