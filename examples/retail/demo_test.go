package retail

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
)

func TestMain(m *testing.M) { os.Exit(trial.Main(m)) }

type estimate struct {
	Value float64 `json:"value"`
}

// report is what the story is told by, in the report's published names.
type report struct {
	Emulated bool `json:"emulated"`
	Job      struct {
		StepsPerSecond *estimate `json:"steps_per_second"`
	} `json:"job"`
	Step struct {
		DataWaitShare *estimate `json:"data_wait_share"`
	} `json:"step"`
	Loaders []struct {
		Kind     string   `json:"kind"`
		Requests *float64 `json:"requests_per_batch"`
	} `json:"loaders"`
	GPUs []struct {
		SMActive *estimate `json:"sm_active_ratio"`
	} `json:"gpus"`
	Baseline *struct {
		Legs map[string]struct {
			SMActive *estimate `json:"sm_active_ratio"`
		} `json:"legs"`
		Conclusion string `json:"conclusion"`
	} `json:"baseline"`
	Verdicts []struct {
		ID string `json:"id"`
	} `json:"verdicts"`
}

func readReport(t *testing.T, path string) report {
	t.Helper()
	var r report
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Job.StepsPerSecond == nil || r.Step.DataWaitShare == nil || len(r.GPUs) != 1 || r.GPUs[0].SMActive == nil || len(r.Loaders) == 0 {
		t.Fatalf("%s leaves the story's numbers unknown: %+v", path, r)
	}
	return r
}

// The demo must tell the case's story, within bounds that hold on a busy machine too.
func TestDemoTellsTheStory(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for two minutes; not run with -short")
	}
	t.Run("without PyTorch", func(t *testing.T) { tellsTheStory(t, "watch", "--torch", "off", "--python", trial.Python(t, "sys")) })
	t.Run("PyTorch and JPEG", func(t *testing.T) { tellsTheStory(t, "torch", "--python", trial.Python(t, "torch, PIL")) })
}

func tellsTheStory(t *testing.T, kind string, flags ...string) {
	out := filepath.Join(t.TempDir(), "out")
	var stdout, stderr bytes.Buffer
	command := exec.Command(trial.Binary, append([]string{"demo", "--out", out}, flags...)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("datawait demo: %v\n%s", err, stderr.String())
	}
	before, after := readReport(t, filepath.Join(out, "before", "report.json")), readReport(t, filepath.Join(out, "after", "report.json"))
	check := func(ok bool, claim string, value any) {
		if !ok {
			t.Errorf("not so: %s (it is %v)", claim, value)
		}
	}
	check(before.Emulated && after.Emulated, "both reports say that the GPU is emulated", before.Emulated)
	check(before.Loaders[0].Kind == kind, "the loader is the one asked for", before.Loaders[0].Kind)
	check(before.GPUs[0].SMActive.Value <= 0.35, "before, SM activity is at most 35 %", before.GPUs[0].SMActive.Value)
	check(before.Step.DataWaitShare.Value >= 0.55, "before, at least 55 % of a step waits", before.Step.DataWaitShare.Value)
	check(before.Loaders[0].Requests != nil && *before.Loaders[0].Requests == 16, "8 samples are 16 requests", before.Loaders[0].Requests)
	check(after.Step.DataWaitShare.Value <= 0.15, "after, at most 15 % of a step waits", after.Step.DataWaitShare.Value)
	faster := after.Job.StepsPerSecond.Value / before.Job.StepsPerSecond.Value
	check(faster >= 2, "the repaired job is at least twice as fast", faster)
	if before.Baseline == nil || before.Baseline.Legs["host-cached"].SMActive == nil {
		t.Fatalf("before, the cached-data test has no SM activity: %+v", before.Baseline)
	}
	check(before.Baseline.Legs["host-cached"].SMActive.Value >= 0.80, "with cached data SM activity is at least 80 %",
		before.Baseline.Legs["host-cached"].SMActive.Value)
	check(before.Baseline.Conclusion == "input-pipeline", "the input pipeline is found to be the cause", before.Baseline.Conclusion)
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", stdout.String(), stderr.String())
	}
}

// The standard-library decoder must see what Pillow sees.
func TestDecoderAgreesWithPillow(t *testing.T) {
	script := `
import io, random, sys
from PIL import Image
import images
random.seed(1)
for mode in (0, 1, 6, 9):
    picture = Image.frombytes("RGB", (31, 17), bytes(random.choice((0, 7, 7, 200, random.randrange(256))) for _ in range(31 * 17 * 3)))
    picture = picture.resize((31, 17)) if mode else picture
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=mode)
    assert images.decode_png(out.getvalue()) == (31, 17, picture.tobytes()), mode
print("ok")
`
	output, err := exec.Command(trial.Python(t, "PIL"), "-c", script).CombinedOutput()
	if err != nil || string(output) != "ok\n" {
		t.Errorf("%v\n%s", err, output)
	}
}
