package verdict

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// The hook watches for exactly the loaders that a report knows how to speak of.
func TestEveryLoaderThatIsWatchedForHasAName(t *testing.T) {
	text, err := os.ReadFile("../../probe/hook/datawait/otherloaders.py")
	if err != nil {
		t.Fatal(err)
	}
	var watched, known []string
	for _, m := range regexp.MustCompile(`(?m)^    "([\w.]+)",`).FindAllStringSubmatch(string(text), -1) {
		watched = append(watched, m[1])
	}
	for _, o := range otherLoaders {
		known = append(known, o.module)
	}
	slices.Sort(watched)
	slices.Sort(known)
	if len(watched) == 0 || !slices.Equal(watched, known) {
		t.Errorf("the hook watches for %v\nknown are          %v", watched, known)
	}
}

// What was not seen is named, and the report says how to make it visible.
func TestWhatWasNotSeenIsNamed(t *testing.T) {
	unfed := Facts{Steps: 100, HookSeen: unit.Some(true), Steady: true, Unfed: true}
	silent := Facts{HookSeen: unit.Some(true), PythonChildren: 2}
	with := func(f Facts, change func(*Facts)) Facts { change(&f); return f }
	for _, c := range []struct {
		name      string
		facts     Facts
		id        string
		title, do []string // parts of them
		notDo     string
	}{
		{"an unknown loader", unfed, LoaderNotSeen, []string{"100 optimizer steps", "no fetch"}, []string{"datawait.watch(loader, workers=N)"}, "num_workers"},
		{"torchdata.nodes", with(unfed, func(f *Facts) { f.OtherLoaders = []string{"webdataset", "torchdata.nodes"} }), LoaderNotSeen,
			[]string{"come from torchdata.nodes"}, []string{"workers=N", "num_workers of its ParallelMapper"}, "WebDataset"},
		{"DALI", with(unfed, func(f *Facts) { f.OtherLoaders = []string{"nvidia.dali.plugin.pytorch"} }), LoaderNotSeen,
			[]string{"come from NVIDIA DALI"}, []string{"num_threads of its pipeline"}, ""},
		{"WebDataset, iterated as it is", with(unfed, func(f *Facts) { f.OtherLoaders = []string{"webdataset"} }), LoaderNotSeen,
			[]string{"perhaps", "WebDataset"}, []string{"N being 0"}, ""},
		{"no steps either", with(silent, func(f *Facts) { f.OtherLoaders = []string{"ffcv.loader"} }), NoStepsSeen,
			[]string{"imports FFCV"}, []string{"if the job trains", "num_workers of its Loader"}, ""},
		{"isolated", with(silent, func(f *Facts) { f.KeptOut = []KeptOut{{"python3 -I train.py", recording.KeptOutIsolated}} }), HookNotLoaded,
			[]string{"`python3 -I train.py`", "-I makes Python ignore PYTHONPATH"}, []string{"without -I", "datawait.install()"}, ""},
		{"a dropped environment", Facts{HookSeen: unit.Some(false), PythonChildren: 1, KeptOut: []KeptOut{{"python3 train.py", recording.KeptOutNoSpool}}},
			HookNotLoaded, []string{"drops the environment"}, []string{"DATAWAIT_"}, ""},
		{"no Python here", Facts{HookSeen: unit.Some(false)}, HookNotLoaded, []string{"no Python process"}, []string{"inside the container"}, ""},
		{"refused", with(silent, func(f *Facts) { f.Refused = []string{"spool is on nfs"} }), HookNotLoaded, []string{"spool is on nfs"}, nil, ""},
	} {
		v := Judge(c.facts, loader.New(loader.Parameters{})).Verdicts[0]
		reached[v.ID] = true
		if v.ID != c.id || v.Share.IsKnown() {
			t.Errorf("%s: %s, share %v", c.name, v.ID, v.Share)
		}
		for _, part := range c.title {
			if !strings.Contains(strings.ToLower(v.Title), strings.ToLower(part)) {
				t.Errorf("%s: the title lacks %q: %s", c.name, part, v.Title)
			}
		}
		for _, part := range c.do {
			if !strings.Contains(v.Do, part) {
				t.Errorf("%s: what to do lacks %q: %s", c.name, part, v.Do)
			}
		}
		if c.notDo != "" && strings.Contains(v.Do+v.Title, c.notDo) {
			t.Errorf("%s: %q is spoken of: %s; %s", c.name, c.notDo, v.Title, v.Do)
		}
	}
}

// A rank that trains as it should is judged, whatever Python beside it was kept out.
func TestAKeptOutPythonBesideATrainingIsNoFinding(t *testing.T) {
	f := trained
	f.KeptOut, f.OtherLoaders = []KeptOut{{"python3 -I tool.py", recording.KeptOutIsolated}}, []string{"torchdata.nodes"}
	for _, v := range Judge(f, loader.New(jobs[0].job.Parameters())).Verdicts {
		if v.ID == HookNotLoaded || v.ID == LoaderNotSeen || v.Do != "" {
			t.Errorf("%+v", v)
		}
	}
}
