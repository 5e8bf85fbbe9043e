package gpusource

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A spool that all users share is no place from which a machine's counters come, whatever lies in it.
func TestWhoeverWritesALogDoesNotTakeThePlaceOfTheCounters(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gpu-0.busy"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := signs
	defer func() { signs = before }()
	for _, driver := range [][]string{{"/proc/self/status"}, nil} {
		signs = driver
		ladder, _ := Choice{Kind: Auto}.candidates(Options{Dir: dir, Own: true})
		for _, c := range ladder {
			if c.Name == Emulated {
				t.Errorf("with the signs %v a log comes into question", driver)
			}
		}
		if due := (Choice{Kind: Auto}).Due(Options{Dir: dir, Own: true}); due != (driver != nil) {
			t.Errorf("with the signs %v it begins: %v", driver, due)
		}
		if !(Choice{Kind: Auto}).Due(Options{Dir: dir}) || (Choice{Kind: Auto}).Due(Options{Dir: t.TempDir()}) != (driver != nil) {
			t.Error("a job's own log is a sign where it is observed")
		}
	}
}

func TestWhatGPUTakes(t *testing.T) {
	for text, want := range map[string]string{
		"auto": "auto", "dcgm=node7:5555": "dcgm=node7:5555", "scrape": "scrape", "scrape=node7:9400": "scrape=http://node7:9400/metrics",
		"scrape=https://node7/metrics": "scrape=https://node7/metrics", "none": "none",
	} {
		c, err := Parse(text)
		if err != nil || c.String() != want {
			t.Errorf("%s: %v, %v", text, c, err)
		}
		if again, err := Parse(c.String()); err != nil || again != c {
			t.Errorf("%s: the child reads %v, %v", text, again, err)
		}
	}
	for text, why := range map[string]string{
		"cupti": "no GPU source", "nvml=x": "takes no address", "scrape=": "is empty", "scrape=http://a:b@n": "takes no password", "scrape=ftp://n": "no URL of a page",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func names(c Choice) (all []string) {
	ladder, beside := c.candidates(Options{})
	for _, one := range ladder {
		all = append(all, one.Name)
	}
	for _, one := range beside {
		all = append(all, "+"+one.Name)
	}
	return all
}

func TestAnExporterIsTheLastRungThatHasSMActivity(t *testing.T) {
	before := signs
	defer func() { signs = before }()
	signs = []string{"/proc/self/status"}
	if got := strings.Join(names(Choice{Kind: Auto}), " "); got != "emulated dcgm nvml-gpm scrape +nvml" {
		t.Error(got)
	}
	if got := strings.Join(names(Choice{Kind: Scrape}), " "); got != "scrape +nvml" {
		t.Error(got)
	}
	signs = nil
	if got := strings.Join(names(Choice{Kind: Auto}), " "); got != "emulated" {
		t.Errorf("without a driver: %s", got)
	}
	if got := strings.Join(names(Choice{Kind: Scrape, Address: "http://n/metrics"}), " "); got != "scrape" {
		t.Errorf("without a driver: %s", got)
	}
}

func TestNobodyThereIsSaid(t *testing.T) {
	_, _, err := Choice{Kind: Scrape, Address: "http://127.0.0.1:1/metrics"}.Open(context.Background(), Options{})
	if err == nil || !strings.Contains(err.Error(), "scrape: no exporter listens at http://127.0.0.1:1/metrics") {
		t.Error(err)
	}
}
