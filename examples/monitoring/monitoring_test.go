// Package monitoring holds datawait serve against a real Prometheus that scrapes it while real jobs train.
package monitoring

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/examples/internal/trial"
	"github.com/datawait/datawait/probe/gpu/standin"
)

func TestMain(m *testing.M) {
	code := trial.Main(m)
	standin.Remove()
	os.Exit(code)
}

// site is a machine with jobs on it, the agent that watches them, and the Prometheus that scrapes that.
type site struct {
	t       *testing.T
	dir     string
	agent   *exec.Cmd
	at      string // of the agent
	reports string // where it makes reports
	server  string // of Prometheus
	engine  string // where DCGM's host engine listens, for whoever looks
	environ []string
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) touch(name string) {
	if err := os.WriteFile(s.path(name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// job is one training, and what it prints at its end.
type job struct {
	*exec.Cmd
	name string
	out  bytes.Buffer
}

// own is what a job's own clock says.
type own struct {
	Steps         float64
	Seconds, Wait float64
}

func (s *site) start(name string, gpu int, arguments ...string) *job {
	s.t.Helper()
	j := &job{name: name}
	j.Cmd = exec.Command(trial.Python(s.t, "torch"), append([]string{"train.py", "--gpu", strconv.Itoa(gpu), "--slow", s.path("slow-" + name), "--until", s.path("over-" + name)}, arguments...)...)
	j.Env = append(os.Environ(), "DATAWAIT_SPOOL="+s.path("spool"), "DATAWAIT_BUSY_DIR="+s.path("busy"), "DATAWAIT_JOB="+name, "PYTHONPATH="+s.path("hook"))
	j.Stdout, j.Stderr = &j.out, os.Stderr
	if err := j.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { j.Process.Kill() })
	return j
}

// end ends a job, and returns what it says of itself.
func (s *site) end(j *job) own {
	s.t.Helper()
	s.touch("over-" + j.name)
	return s.result(j)
}

// serve starts the agent.
func (s *site) serve() {
	s.t.Helper()
	s.agent = exec.Command(trial.Binary, "serve", "--gpu", "dcgm="+s.engine, "--listen", s.at, "--spool", s.path("spool"), "--state", s.path("state"),
		"--socket", s.path("gpu.sock"), "--scrape-interval", "1s", "--report-listen", s.reports, "--report-web-config", s.path("web.yml"))
	s.agent.Env = s.environ
	log, err := os.OpenFile(s.path("serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.agent.Stderr = log
	if err := s.agent.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.agent.Process.Kill() })
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// aMinuteIsASecond are the shipped rules with every time a sixtieth of what it is.
func aMinuteIsASecond(t *testing.T, rules string) string {
	t.Helper()
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	times := regexp.MustCompile(`\b(\d+)([mhd])\b`)
	return times.ReplaceAllStringFunc(string(text), func(d string) string {
		n, _ := strconv.Atoi(d[:len(d)-1])
		return strconv.Itoa(n*map[byte]int{'m': 1, 'h': 60, 'd': 1440}[d[len(d)-1]]) + "s"
	})
}

func (s *site) prometheus() {
	s.t.Helper()
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		s.t.Fatal("prometheus is missing; `make setup` fetches it")
	}
	config, err := os.ReadFile("prometheus.yml")
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.NewReplacer("scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s", "../../exporters/rules/datawait.rules.yml", s.path("rules.yml"),
		"127.0.0.1:9977", s.at).Replace(string(config))
	for name, content := range map[string]string{"prometheus.yml": text, "rules.yml": aMinuteIsASecond(s.t, "../../exporters/rules/datawait.rules.yml")} {
		if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	address := free(s.t)
	cmd := exec.Command(prometheus, "--config.file", s.path("prometheus.yml"), "--storage.tsdb.path", s.path("data"), "--web.listen-address", address, "--log.level", "warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s.server = "http://" + address
}

// sample is one row of an answer.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (x sample) number() float64 {
	text, _ := x.Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// ask asks Prometheus.
func (s *site) ask(query string) ([]sample, error) {
	resp, err := http.Get(s.server + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result json.RawMessage }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	var rows []sample
	_ = json.Unmarshal(answer.Data.Result, &rows) // a scalar has none
	return rows, nil
}

// one returns the number that a query comes to, NaN without any.
func (s *site) one(query string) float64 {
	s.t.Helper()
	rows, err := s.ask(query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	if len(rows) != 1 {
		return math.NaN()
	}
	return rows[0].number()
}

// wait waits until a query comes to something that is wanted.
func (s *site) wait(what, query string, limit time.Duration, wanted func(float64) bool) {
	s.t.Helper()
	var last float64
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		rows, err := s.ask(query)
		last = math.NaN()
		if err == nil && len(rows) == 1 {
			last = rows[0].number()
		}
		if wanted(last) {
			return
		}
	}
	s.t.Fatalf("%s: %s was %v for %v", what, query, last, limit)
}

func there(v float64) bool { return v == v }
func gone(v float64) bool  { return v != v }

func TestAJobThatBeginsToWaitIsSeen(t *testing.T) {
	s := &site{t: t, dir: t.TempDir(), at: free(t), reports: free(t)}
	t.Cleanup(func() {
		if log, err := os.ReadFile(s.path("serve.log")); err == nil && t.Failed() {
			t.Logf("the agent's log:\n%s", log)
		}
	})
	for _, name := range []string{"spool", "busy"} {
		if err := os.Mkdir(s.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(trial.Binary, "hook", s.path("hook")).CombinedOutput(); err != nil {
		t.Fatalf("unpacking the hook: %v\n%s", err, out)
	}
	alpha := s.start("alpha", 0, "--seconds", "600")
	beta := s.start("beta", 1, "--seconds", "600")
	gamma := s.start("gamma", 2, "--seconds", "6", "--after", s.path("begin-gamma"))
	scenario := standin.Groups
	for gpu, j := range []*job{alpha, beta, gamma} {
		scenario += standin.A100(gpu, "busy="+s.path(fmt.Sprintf("busy/gpu-%d.busy", gpu))) + fmt.Sprintf("process gpu=%d pid=%d memory=1024\n", gpu, j.Process.Pid)
	}
	s.environ = append(os.Environ(), standin.Environment(t, scenario)...)
	if err := os.WriteFile(s.path("web.yml"), []byte("basic_auth_users:\n  ops: "+hash+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	engine, err := net.Listen("tcp", "127.0.0.1:0") // the stand-in is in the library; what is asked here is only whether somebody listens
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	s.engine = engine.Addr().String()
	s.serve()
	s.prometheus()

	s.wait("the jobs are seen", `count(datawait_rank_running == 1)`, 60*time.Second, func(v float64) bool { return v >= 2 })
	s.wait("counters move", `sum(rate(datawait_steps_total{training_job="beta"}[10s]))`, 60*time.Second, func(v float64) bool { return v > 5 })
	s.touch("slow-alpha") // four samples of 20 ms a batch against a step of 30 ms: it waits 60 % of the time
	s.touch("begin-gamma")
	short := s.result(gamma)
	s.agent.Process.Kill() // in the middle of it all
	s.agent.Wait()
	time.Sleep(3 * time.Second)
	s.serve()

	s.wait("the alert fires", `ALERTS{alertname="DatawaitJobWaits",alertstate="firing",training_job="alpha"}`, 120*time.Second, there)
	if rows, err := s.ask(`ALERTS{alertname="DatawaitJobWaits",training_job!="alpha"}`); err != nil || len(rows) > 0 {
		t.Errorf("another job is said to wait: %v %v", rows, err)
	}
	s.panels()
	s.labels()
	// What a short job did is seen by increase(), which extrapolates to the ends of its window.
	if grown := s.one(`increase(datawait_steps_total{training_job="gamma"}[3m])`); !(math.Abs(grown-short.Steps) <= 0.1*short.Steps+5) {
		t.Errorf("a short job of %v steps grew by %v", short.Steps, grown)
	}
	if err := os.Remove(s.path("slow-alpha")); err != nil {
		t.Fatal(err)
	}
	s.wait("the alert resolves", `ALERTS{alertname="DatawaitJobWaits",alertstate="firing",training_job="alpha"}`, 90*time.Second, gone)
	waiting, steady := s.end(alpha), s.end(beta)

	s.wait("the end is seen", `sum(datawait_rank_running)`, 30*time.Second, func(v float64) bool { return v == 0 })
	time.Sleep(20 * time.Second) // what GPUs did is told 15 s late
	jobs := map[string]own{"alpha": waiting, "beta": steady, "gamma": short}
	for name, told := range jobs {
		s.againstItself(name, told)
	}
	s.fleet(jobs)
	s.ends()
}

// result waits for a job that ends by itself, and returns what it says of itself.
func (s *site) result(j *job) (o own) {
	s.t.Helper()
	if err := j.Wait(); err != nil {
		s.t.Fatalf("job %s: %v", j.name, err)
	}
	if err := json.Unmarshal(j.out.Bytes(), &o); err != nil {
		s.t.Fatalf("job %s said %q: %v", j.name, j.out.String(), err)
	}
	return o
}

// againstItself holds what was counted against a job's own clock, over a restart of the agent.
func (s *site) againstItself(name string, told own) {
	s.t.Helper()
	of := `{training_job="` + name + `"}`
	within := func(what string, got, want, tolerance float64) {
		s.t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			s.t.Errorf("job %s: %s %v, by its own clock %v", name, what, got, want)
		}
	}
	within("steps", s.one(`sum(datawait_steps_total`+of+`)`), told.Steps, 1)
	first := 2.0 // seconds: the first batch is an epoch start
	within("wait", s.one(`sum(datawait_data_wait_seconds_total`+of+`)`), told.Wait, 0.02*told.Wait+first)
	within("training", s.one(`sum(datawait_training_seconds_total`+of+`)`), told.Seconds, 0.02*told.Seconds+first)
	allocated := s.one(`sum(datawait_gpu_allocated_seconds_total` + of + `)`)
	within("the accounts' sum", s.one(`sum(datawait_gpu_account_seconds_total`+of+`)`), allocated, 0.01*allocated)
	// From the ring's making to the process's end: a little more than the loop. What a job did between the last look and the agent's death is
	// nobody's if it ended before the next agent looked.
	if over := allocated - told.Seconds; over < -0.01*told.Seconds-1 || over > 0.01*told.Seconds+5 {
		s.t.Errorf("job %s: %v s allocated, in its loop it was %v s", name, allocated, told.Seconds)
	}
}

// labels: nothing of ours collides with what Prometheus sets itself.
func (s *site) labels() {
	s.t.Helper()
	for _, query := range []string{`count({exported_job!=""})`, `count({exported_instance!=""})`} {
		if n := s.one(query); n == n {
			s.t.Errorf("%s: %v series had their labels renamed", query, n)
		}
	}
	if n := s.one(`count(datawait_rank_running{training_job=~"alpha|beta|gamma"})`); n != 3 {
		s.t.Errorf("%v ranks have their job's name", n)
	}
}

// panels asks every query of the dashboards. Of those on what this site has, nearly all must have an answer.
func (s *site) panels() {
	s.t.Helper()
	f, err := os.Open("../../exporters/grafana/queries.txt")
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	asked, answered, title := 0, 0, ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			title = line
			continue
		}
		asked++
		rows, err := s.ask(line)
		if err != nil {
			s.t.Errorf("%s\n%s: %v", title, line, err)
		}
		if len(rows) > 0 {
			answered++
		} else {
			s.t.Logf("no answer: %s", title)
		}
	}
	if asked < 50 || answered < asked/2 {
		s.t.Errorf("%d of %d panels' queries have an answer", answered, asked)
	}
}

// password is what ops has, and hash its bcrypt hash, of exporter-toolkit's own tests.
const (
	password = "fakepassword"
	hash     = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
)

// inABrowser: a report is made for whoever has the password, and for nobody else.
func (s *site) inABrowser() {
	s.t.Helper()
	for user, want := range map[string]int{"ops": http.StatusOK, "guest": http.StatusUnauthorized} {
		request, err := http.NewRequest(http.MethodGet, "http://"+s.reports+"/report?job=alpha", nil)
		if err != nil {
			s.t.Fatal(err)
		}
		request.SetBasicAuth(user, password)
		resp, err := http.DefaultClient.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want {
			s.t.Errorf("%s: %s, %v", user, resp.Status, err)
		}
		if reported := bytes.Contains(page, []byte("train.py")); reported != (want == http.StatusOK) {
			s.t.Errorf("%s: a report of train.py: %v", user, reported)
		}
	}
}

// ends: the agent stops when it is told to, and what it saw can be reported.
func (s *site) ends() {
	s.t.Helper()
	metrics, err := http.Get("http://" + s.at + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer metrics.Body.Close()
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = metrics.Body
	if out, err := check.CombinedOutput(); err != nil {
		s.t.Errorf("promtool: %v\n%s", err, out)
	}
	report, err := exec.Command(trial.Binary, "report", "--format", "json", "--job", "alpha", s.path("state")).Output()
	var told struct {
		Step struct {
			Share struct{ Value float64 } `json:"data_wait_share"`
		}
	}
	if err == nil {
		err = json.Unmarshal(report, &told)
	}
	if err != nil || !(told.Step.Share.Value > 0.1) {
		s.t.Errorf("the report of alpha: data wait %v, %v", told.Step.Share.Value, err)
	}
	s.inABrowser()
	if err := s.agent.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.agent.Wait(); err != nil {
		s.t.Errorf("told to stop, the agent ended with %v", err)
	}
	io.Copy(io.Discard, metrics.Body)
}
