package doctor

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

//go:embed rehearsal.py
var script string

// lasts is how long, in seconds, the rehearsed job trains: a host engine is asked at its end, if not before.
const lasts = "2.5"

// seen is what the recording of the rehearsal holds.
type seen struct {
	mains, workers []recording.Stream
	host           recording.HostNote
	job            recording.JobNote
	sources        map[string]string // why a source had no data at the end, "" = it had
	gpus           []watched
	states         bool // NVML told of clocks, power and memory
	allocations    []recording.AllocationNote
	fetches        int
	batches        int
	usable         float32 // cores; NaN = not known
	runQueue       bool    // the workers' records tell how long they waited for a core
	warnings       []string
	said           string // on stderr
}

// watched is one GPU and what came of it.
type watched struct {
	recording.GPUNote
	windows, known int    // of SM activity, and those with a value
	length         uint64 // ns, of the windows together
	active         int    // windows in which some SM was active
	looks          int    // of the driver at how long kernels were there
	busy           int    // of them: all the time
}

// stopped reports counters that read nothing while the driver sees kernels all the time: a report does not believe them.
func (g *watched) stopped() bool {
	return g.known > 0 && g.active == 0 && g.looks > 0 && g.busy == g.looks
}

// rehearse runs the script under datawait record in a process of its own: whatever crashes there is a finding.
func rehearse(ctx context.Context, o Options, python string) (s seen, err error) {
	dir, err := os.MkdirTemp("", "datawait-doctor-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	self, err := o.self()
	if err != nil {
		return s, err
	}
	ctx, stop := context.WithTimeout(ctx, o.Patience)
	defer stop()
	out := filepath.Join(dir, "rehearsal")
	job := []string{python, "-c", script, lasts}
	if python == "" { // the GPUs and the machine can be looked at all the same
		job = []string{"sleep", lasts}
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"record", "--quiet", "--format", "json", "--out", out, "--gpu", o.GPU.String(), "--"}, job...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	failed := cmd.Run()
	if ctx.Err() != nil {
		failed = fmt.Errorf("it did not end within %v", o.Patience)
	}
	r, err := recording.Open(out)
	if err != nil {
		return s, errors.Join(failed, fmt.Errorf("reading what it recorded: %w\n%s", err, strings.TrimSpace(said.String())))
	}
	s.sources, s.usable = map[string]string{}, float32(math.NaN())
	s.said = strings.TrimSpace(said.String())
	if failed != nil {
		s.warnings = append(s.warnings, fmt.Sprintf("the rehearsed job failed: %v", failed))
	}
	for _, reader := range r.Readers() {
		s.warnings = append(s.warnings, reader.Manifest().Warnings...)
		for _, stream := range reader.Streams() {
			if err := s.take(reader, stream); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func (s *seen) take(reader recording.Reader, stream recording.Stream) error {
	switch stream.Declaration.Producer {
	case recording.ProducerMain:
		s.mains = append(s.mains, stream)
	case recording.ProducerWorker:
		s.workers = append(s.workers, stream)
	}
	gpus := s.notes(stream)
	_, err := reader.Stream(stream.ID, func(records []recording.Record) error {
		for i := range records {
			s.record(&records[i], gpus)
		}
		return nil
	})
	return err
}

// notes takes the notes of a stream; it returns its GPUs by their number.
func (s *seen) notes(stream recording.Stream) map[uint16]int {
	n := stream.Notes
	for _, d := range n.DeviceNames {
		if d.Class == recording.ClassSource {
			s.sources[d.Name] = d.Why
		}
	}
	if len(n.Hosts) > 0 {
		s.host = n.Hosts[len(n.Hosts)-1]
	}
	if len(n.Jobs) > 0 {
		s.job = n.Jobs[len(n.Jobs)-1]
	}
	s.allocations = append(s.allocations, n.Allocations...)
	gpus := map[uint16]int{}
	for _, g := range n.GPUs {
		at, known := gpus[g.GPU]
		if !known {
			at = len(s.gpus)
			s.gpus = append(s.gpus, watched{})
			gpus[g.GPU] = at
		}
		s.gpus[at].GPUNote = g
	}
	return gpus
}

func (s *seen) record(r *recording.Record, gpus map[uint16]int) {
	switch r.Kind() {
	case recording.KindGPU:
		g := r.GPU()
		if at, ok := gpus[g.Ref]; ok {
			s.gpus[at].windows++
			if g.SM == g.SM && g.Flags&recording.GPUUntrusted == 0 {
				s.gpus[at].known++
				s.gpus[at].length += g.End - g.Begin
				if g.SM >= nothingActive {
					s.gpus[at].active++
				}
			}
		}
	case recording.KindGPUState:
		s.states = true
		if at, ok := gpus[r.Ref()]; ok {
			s.gpus[at].looked(r.GPUState().Resident)
		}
	case recording.KindFetch:
		s.fetches++
	case recording.KindBatch:
		s.batches++
	case recording.KindCost:
		s.runQueue = s.runQueue || r.Cost().RunQueue != recording.Unknown64
	case recording.KindLimits:
		if usable := r.Limits().Usable; usable == usable { // the last record covers the end of the job
			s.usable = usable
		}
	}
}

// Bounds of what contradicts itself, as the analysis has them: one warp on one of 132 SMs reads 0.0076.
const (
	nothingActive = 0.002
	busyAllTime   = 0.9
)

func (g *watched) looked(resident float32) {
	if resident != resident {
		return
	}
	g.looks++
	if resident >= busyAllTime {
		g.busy++
	}
}

// kept returns why the hook was kept out of Pythons.
func (s *seen) kept() []string {
	var why []string
	for _, k := range s.job.KeptOut {
		if !slices.Contains(why, k.Why) {
			why = append(why, k.Why)
		}
	}
	return append(why, s.job.Refused...)
}
