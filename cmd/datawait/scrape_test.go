package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// exporterPage serves a page of a real dcgm-exporter on a node of Kubernetes, whose PCIe and energy counters show a new collection at every look.
func exporterPage(t *testing.T, change func(string) string) (url string) {
	t.Helper()
	b, err := os.ReadFile("../../probe/gpu/scrape/testdata/dcgm-exporter-h100x2-k8s.prom")
	if err != nil {
		t.Fatal(err)
	}
	page := change(string(b))
	var looks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := looks.Add(1)
		io.WriteString(w, strings.ReplaceAll(page, " 104857600\n", fmt.Sprintf(" %d\n", 104857600+n)))
		for i := range 2 {
			fmt.Fprintf(w, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"%d\",UUID=\"GPU-aaaaaaaa-0000-0000-0000-00000000000%d\"} %d\n", i, i, n*1000)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

var eightSeconds = strings.ReplaceAll(training, "range(60)", "range(160)")

const hopper0 = "GPU-aaaaaaaa-0000-0000-0000-000000000000"

func TestTheReportHasAnExportersCountersAndPods(t *testing.T) {
	url := exporterPage(t, func(page string) string { return page })
	report, said := recordReport(t, standin.A100(0, "")+"no-driver\n", "scrape="+url, eightSeconds)
	g := gpusOf(report)[hopper0]
	if g == nil || g["source"] != "scrape" || !slices.Contains(holdersOf(g), "pod team-a/train-0") || g["assigned_by"] != "dcgm-exporter" {
		t.Fatalf("%v\n%s", g, said)
	}
	for name, want := range map[string]float64{"sm_active": 0.25, "tensor_active": 0.4, "resident": 0.87} {
		rung := rungOf(g, name)
		if v, ok := rung["ratio"].(float64); !ok || v < want-0.001 || v > want+0.001 || rung["grade"] == "A" || rung["grade"] == nil {
			t.Errorf("%s is %v, want %v\n%s", name, rung, want, said)
		}
	}
	if coverage, ok := g["coverage"].(float64); !ok || coverage <= 0 || coverage > 0.9 { // its first collections have no beginning
		t.Errorf("coverage %v", g["coverage"])
	}
}

// rungOf returns one rung of a GPU's ladder.
func rungOf(g map[string]any, name string) map[string]any {
	for _, r := range g["ladder"].([]any) {
		if r := r.(map[string]any); r["name"] == name {
			return r
		}
	}
	return nil
}

func TestTheReportNamesTheLinesThatAStockExporterLacks(t *testing.T) {
	url := exporterPage(t, func(page string) string { return strings.ReplaceAll(page, "SM_ACTIVE", "X_ACTIVE") })
	report, said := recordReport(t, standin.A100(0, "")+"no-driver\n", "scrape="+url, training)
	g := gpusOf(report)[hopper0]
	if g == nil {
		t.Fatalf("%v\n%s", report["gpus"], said)
	}
	if sm := rungOf(g, "sm_active"); sm["ratio"] != nil {
		t.Errorf("SM activity %v", sm)
	}
	if why := fmt.Sprint(report["quality"], report["reasons"]); !strings.Contains(why, "these lines add it: DCGM_FI_PROF_SM_ACTIVE, gauge,") {
		t.Errorf("%s\n%s", why, said)
	}
}

// Its health checks lie: an exporter that lost its engine answers 200 to everything, and has nothing to tell.
func TestTheReportCallsAnEmptyPageAFailure(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	report, said := recordReport(t, standin.A100(0, "")+"no-driver\n", "scrape="+server.URL, training)
	if all := fmt.Sprint(report["gpus"], report["quality"], report["reasons"]); strings.Contains(all, `"value":0`) || !strings.Contains(all, "its page is empty") {
		t.Errorf("%s\n%s", all, said)
	}
}
