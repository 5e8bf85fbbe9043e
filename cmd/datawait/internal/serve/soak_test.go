package serve

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/shelf"
	exporter "github.com/datawait/datawait/exporters/prometheus"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/sampler"
)

// TestSoak lets short jobs with workers come and go on three GPUs, each for twenty seconds of a time that is made up, beside one that trains
// all the time on a fourth, and holds an agent to what its first third took once it was warm: memory, files, goroutines, its state, its recordings, what it shows. Everything but
// the pace is real: rings and folders on a disk, the books, the state file, the shelf, the scrapes.
//
//	SOAK_JOBS=20000 go test -count=1 -timeout 3h -run TestSoak ./cmd/datawait/internal/serve
func TestSoak(t *testing.T) {
	jobs := 240
	if text := os.Getenv("SOAK_JOBS"); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSoak(t)
	looks := make([]look, 0, 2*mostLooks) // which is not to be what grows
	every := uint64(shows * max(1, jobs/mostLooks))
	for now := s.began; s.ended < jobs; now += uint64(time.Second) {
		s.second(now)
		if past := (now - s.began) / uint64(time.Second); past >= warm && past%every == 0 {
			looks = append(looks, s.look())
		}
	}
	third := len(looks) / 3
	if third < 5 {
		t.Fatalf("%d jobs are too few: it was looked at %d times", jobs, len(looks))
	}
	first, last := usual(looks[:third]), usual(looks[len(looks)-third:])
	t.Logf("%d jobs, looked at %d times; a look of the first third and of the last:\n%+v\n%+v", s.ended, len(looks), first, last)
	if most := first.heap + first.heap/20 + 128<<10; last.heap > most {
		t.Errorf("the heap grows: from %d to %d bytes", first.heap, last.heap)
	}
	if last.files > first.files || last.goroutines > first.goroutines {
		t.Errorf("%d files and %d goroutines became %d and %d", first.files, first.goroutines, last.files, last.goroutines)
	}
	if last.state > first.state*11/10 || last.page > first.page*11/10 {
		t.Errorf("the state grows from %d to %d bytes, the page from %d to %d", first.state, last.state, first.page, last.page)
	}
	for _, l := range looks {
		if l.shelved > mostShelved*3/2 || l.folders > mostJobs*3/2 {
			t.Fatalf("%d bytes of recordings in %d folders, and %d in %d are allowed", l.shelved, l.folders, mostShelved, mostJobs)
		}
	}
	s.check()
}

const (
	soakGPUs    = 4
	jobLength   = 20       // s
	shows       = 5        // s, between two times that an agent publishes
	mostLooks   = 300      // about as many looks are taken of a soak
	warm        = 60 + 120 // s: what it forgets, and what it waits for after its start (live.Node)
	mostShelved = 4 << 20  // bytes
	mostJobs    = 40       // folders of recordings
)

// soak is an agent whose loop the test is.
type soak struct {
	t      *testing.T
	agent  *agent
	began  uint64
	crowd  crowd
	places [soakGPUs]*job
	gone   []*job // that have ended
	jobs   int    // so far
	ended  int
	gpus   *recording.Appender // of the GPU child
	pages  http.Handler
}

func newSoak(t *testing.T) *soak {
	dir := t.TempDir()
	o := Options{Spool: filepath.Join(dir, "spool"), State: filepath.Join(dir, "state"), Socket: "-", GPU: gpusource.Choice{Kind: gpusource.None}, Forget: time.Minute,
		Log: slog.New(slog.DiscardHandler)}.complete()
	a, err := newAgent(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	a.shelf = shelf.New(shelf.Options{Dir: a.store.path(shelf.Recordings), Slice: 1000 * time.Hour, Keep: 1 << 20, All: mostShelved, Jobs: mostJobs, Host: a.host}, a.node)
	a.wire = newWire(a.shelf.Over(a.node.Agent(), nil), a.hub, a.pods)
	a.sampler = sampler.New(sampler.Clock{}, a.own)
	s := &soak{t: t, agent: a, began: clock.Mono(), crowd: newCrowd(t)}
	id, err := a.wire.Declare(recording.Declaration{Producer: recording.ProducerAgent, PID: os.Getpid() + 1})
	if err != nil {
		t.Fatal(err)
	}
	s.gpus = recording.NewAppender(a.wire, id)
	for i := range soakGPUs {
		s.ok(s.gpus.Note(recording.GPUNote{GPU: uint16(i), UUID: gpuName(i), Name: "A100", Source: "dcgm", Grade: "A"}))
	}
	s.pages = exporter.New(exporter.Options{Snapshot: a.snapshot.Load, Agent: a.agent, Unix: unixOf, ScrapeInterval: o.ScrapeInterval, Log: o.Log}).Handler()
	return s
}

func gpuName(i int) string { return fmt.Sprintf("GPU-%d", i) }

func (s *soak) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// second is what happens on the machine in a second, and what an agent does in it.
func (s *soak) second(now uint64) {
	past := int((now - s.began) / uint64(time.Second))
	for i, j := range s.places {
		if due := i > 0 && (past+i*jobLength/soakGPUs)%jobLength == 0; j != nil && due {
			j.end(now)
			s.gone = append(s.gone, j)
			s.places[i], j = nil, nil
			s.ended++
		}
		if j == nil && past%2 == 0 {
			s.places[i] = s.crowd.newJob(s.t, s.agent.options.Spool, s.jobs, gpuName(i), now)
			s.jobs++
		} else if j != nil {
			j.train(now)
		}
		nan := float32(math.NaN())
		s.ok(s.gpus.Append(recording.GPU{Ref: uint16(i), Flags: recording.GPUHeldKnown | recording.GPUHeld, Begin: now, End: now + uint64(time.Second), SM: 0.5,
			Resident: 0.6, Tensor: 0.2, DRAM: nan, Copy: nan, Power: nan, SMClock: nan, Memory: nan}.Encode()))
	}
	ctx := context.Background()
	if past%2 == 0 {
		s.ok(s.agent.drain(ctx, now))
	}
	if past%shows == 0 {
		s.ok(s.agent.shelf.Tick(s.agent.began.Add(time.Duration(past) * time.Second)))
		s.ok(s.agent.publish(ctx, now))
		for _, j := range s.gone[:max(0, len(s.gone)-soakGPUs)] {
			j.epilog()
		}
		s.gone = s.gone[max(0, len(s.gone)-soakGPUs):]
		s.page()
	}
}

func (s *soak) page() int {
	answer := httptest.NewRecorder()
	s.pages.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		s.t.Fatal(answer.Body)
	}
	return answer.Body.Len()
}

// check makes sure that the jobs were seen: a soak of nothing is flat.
func (s *soak) check() {
	s.t.Helper()
	shown := s.agent.snapshot.Load()
	steps := uint64(0)
	for _, r := range shown.Ranks {
		if r.Tenant.Job == "pretraining" && int(r.Steps) < s.ended*jobLength*jobPace/soakGPUs {
			s.t.Errorf("%d steps of the job that went on were counted", r.Steps)
		}
		if strings.HasPrefix(r.Tenant.Job, "train.py") {
			steps += r.Steps
		}
	}
	if every := uint64((jobLength - 3) * jobPace); steps < every*uint64(s.ended/2)*9/10 {
		s.t.Errorf("%d steps of %d jobs were counted, not %d of each", steps, s.ended/2, every)
	}
	if rows := len(shown.Ranks); rows > 40 {
		s.t.Errorf("%d ranks are shown, of jobs that have ended a minute ago at most", rows)
	}
	if counts := s.agent.yard.Counts(); counts.Bad+counts.Refused > 0 {
		s.t.Errorf("not followed: %+v", counts)
	}
}
