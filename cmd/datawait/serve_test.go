package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/probe/gpu/served"
	"github.com/datawait/datawait/probe/gpu/standin"
)

// served leaves an agent running over a stand-in engine, and returns its process and the socket at which it offers samples.
func servedBy(t *testing.T, scenario string) (agent *exec.Cmd, socket string) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "gpu.sock")
	agent = exec.Command("datawait", "serve", "--gpu", "dcgm="+engine(t), "--listen", "127.0.0.1:0", "--spool", filepath.Join(dir, "spool"), "--state", filepath.Join(dir, "state"),
		"--socket", socket, "--interval", "200ms", "--scrape-interval", "1s")
	agent.Env = append(os.Environ(), standin.Environment(t, scenario)...)
	var said bytes.Buffer
	agent.Stderr = &said
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		agent.Process.Kill()
		agent.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if conn, err := served.Dial(socket); err == nil {
			conn.Close()
			return agent, socket
		}
	}
	t.Fatal("the agent offers no samples")
	return nil, ""
}

// beside records a job as in a training pod: there is no engine and no driver, but the socket of the agent.
func beside(t *testing.T, socket, script string, meanwhile func(dir string)) (report map[string]any, said string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("datawait", "record", "--gpu", gpusource.Auto, "--out", "out", "--", python(), "train.py")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DATAWAIT_GPU_SOCKET="+socket)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(dir)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	text, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	return report, output.String()
}

func TestARecordTakesTheCountersOfTheAgentThatHasThem(t *testing.T) {
	t.Parallel()
	_, socket := servedBy(t, standin.A100(0, "sm=0.42 tensor=0.2 resident=0.9")+standin.Groups)
	report, said := beside(t, socket, strings.ReplaceAll(training, "range(60)", "range(400)"), nil)
	gpus, _ := report["gpus"].([]any)
	if len(gpus) != 1 {
		t.Fatalf("%d GPUs\n%s", len(gpus), said)
	}
	g := gpus[0].(map[string]any)
	sm, _ := g["sm_active_ratio"].(map[string]any)
	if g["uuid"] != standin.UUID(0) || g["source"] != "dcgm" || sm == nil || sm["value"].(float64) < 0.419 || sm["value"].(float64) > 0.421 {
		t.Errorf("%+v\n%s", g, said)
	}
}

// The agent is killed in the middle: the record goes on to its end and says that the counters are missing from there.
func TestARecordOutlivesTheAgentThatHasTheCounters(t *testing.T) {
	t.Parallel()
	agent, socket := servedBy(t, standin.A100(0, "sm=0.42 tensor=0.2 resident=0.9")+standin.Groups)
	script := strings.Replace(training, "import time, datawait\n", "import time, datawait\nopen('begun', 'w').close()\n", 1)
	report, said := beside(t, socket, strings.ReplaceAll(script, "range(60)", "range(200)"), func(dir string) {
		for range 600 {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		agent.Process.Kill()
	})
	if quality := fmt.Sprint(report["quality"]); !strings.Contains(quality+said, "serves GPU samples on this machine ended") {
		t.Errorf("it is not said: %s\n%s", quality, said)
	}
	if steps, _ := json.Marshal(report["step"]); !strings.Contains(string(steps), "data_wait_share") {
		t.Errorf("%s", steps)
	}
}

// A socket that a dead agent left is none.
func TestARecordBesideASocketOfNobody(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "gpu.sock")
	l, err := served.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	l.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	l.Close()
	report, _ := beside(t, socket, training, nil)
	for _, g := range report["gpus"].([]any) {
		if sm := g.(map[string]any)["sm_active_ratio"]; sm != nil {
			t.Errorf("SM activity %v from nowhere", sm)
		}
	}
}
