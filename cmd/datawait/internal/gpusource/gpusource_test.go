package gpusource

import (
	"context"
	"strings"
	"testing"
)

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
