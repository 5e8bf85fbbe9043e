package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/dcgm"
	"github.com/datawait/datawait/probe/recording"
)

// lookAtGPUs says of each GPU what is known of it, and who holds them.
func lookAtGPUs(wanted gpusource.Choice, s seen) (all []Finding) {
	for _, g := range s.gpus {
		all = append(all, judge(g, s))
	}
	if len(s.gpus) == 0 {
		all = append(all, noGPU(wanted, s))
		return all
	}
	if s.states {
		all = append(all, Finding{ID: "gpu-state", Subject: GPUs, State: Good, Grade: string(gpu.GradeA),
			Says: "NVML tells clocks and why they are low, power, memory, PCIe link, processes and Xid errors"})
	} else if !s.emulated() {
		why := s.refusal("nvml")
		all = append(all, Finding{ID: "gpu-state", Subject: GPUs, State: Missing, Raise: raise(why),
			Says: sentence("clocks, power, PCIe link, processes and Xid errors are not known", why)})
	}
	if f, ok := engine(s); ok {
		all = append(all, f)
	}
	return append(all, allocation(s))
}

// engine says what our watch does to others: of several intervals for one field a host engine takes the smallest, for all its clients. What
// it costs was measured with an engine of DCGM 4.6, 8 GPUs and 23 fields: 8 to 15 % of a core at 100 ms, 1 % at 1 s.
func engine(s seen) (Finding, bool) {
	for _, g := range s.gpus {
		asked, ok := g.Interval.Get()
		if g.Source != dcgm.Name || g.known == 0 || !ok {
			continue
		}
		return Finding{ID: "engine", Subject: GPUs, State: Good, Says: fmt.Sprintf(
			"while a job is recorded the host engine samples every %v for all its clients, dcgm-exporter too; at 100ms that costs it 1 to 2 %% of a core per GPU",
			time.Duration(asked)), Raise: "where that is too much: --interval 1s"}, true
	}
	return Finding{}, false
}

// emulated reports whether all GPUs are.
func (s *seen) emulated() bool {
	for _, g := range s.gpus {
		if !g.Emulated {
			return false
		}
	}
	return true
}

// judge says how well one GPU is measured.
func judge(g watched, s seen) Finding {
	f := Finding{ID: "gpu", Subject: GPUs, Grade: g.Grade}
	name := strings.TrimSpace(g.Name + " " + g.UUID)
	if g.Emulated {
		name += " (emulated)"
	}
	switch {
	case g.known > 0:
		f.State = Good
		if g.Grade == string(gpu.GradeC) {
			f.State = Limited
		}
		length := time.Duration(g.length / uint64(g.known))
		f.Says = fmt.Sprintf("%s: SM activity from %s, %d windows of %v", name, g.Source, g.known, length.Round(time.Millisecond))
		if asked, ok := g.Interval.Get(); ok && float64(length) > 1.5*float64(asked) {
			f.State = Limited
			f.Says += fmt.Sprintf("; windows of %v were asked for", time.Duration(asked))
		}
		if unknown := g.windows - g.known; unknown > 0 {
			f.State = Limited
			f.Says += fmt.Sprintf("; %d windows could not be trusted", unknown)
		}
		if g.stopped() {
			f.State, f.Grade = Limited, ""
			f.Says += "; all of them read 0 while the driver sees kernels all the time, so the counters have stopped and a report does not believe them"
			f.Raise = "dmesg | grep Xid; restart the nvidia-dcgm service, else reset the GPU (nvidia-smi -r) once nobody uses it"
		}
		if g.Why != "" {
			f.Says += "; not by a better source: " + g.Why
			f.Raise = cmp.Or(f.Raise, raise(g.Why))
		}
	default:
		f.State, f.Grade = Missing, ""
		why := s.trouble(g)
		f.Says = sentence(name+": SM activity is not measured", why)
		f.Raise = raise(why)
		if g.looks > 0 { // a slice has no GPU-util
			f.State, f.Grade = Limited, string(gpu.GradeC)
			f.Says += "; GPU-util stands in for it"
		}
	}
	return f
}

// trouble is why a GPU gave nothing: what the choice of sources says of it, or else the source itself.
func (s *seen) trouble(g watched) string {
	if g.Why != "" {
		return g.Why
	}
	return s.refusal("gpu")
}

// refusal is what a source said last, where its name begins like that.
func (s *seen) refusal(source string) string {
	for name, why := range s.sources {
		if strings.HasPrefix(name, source) && why != "" {
			return why
		}
	}
	return ""
}

func noGPU(wanted gpusource.Choice, s seen) Finding {
	f := Finding{ID: "gpu", Subject: GPUs, State: Missing}
	why := s.refusal("gpu")
	switch {
	case wanted.Kind == gpusource.None:
		f.Says = "no GPU was looked for (--gpu none)"
		return f
	case why == "" && !wanted.Due(gpusource.Options{Dir: "/nonexistent"}):
		why = "there is no sign of NVIDIA's driver"
		f.Raise = "on a machine with GPUs load the driver; in a container ask for them (docker run --gpus all, or nvidia.com/gpu in the pod)"
	}
	f.Says = sentence("no GPU can be watched", why)
	if f.Raise == "" {
		f.Raise = raise(why)
	}
	return f
}

// allocation says whether it is known who holds the GPUs.
func allocation(s seen) Finding {
	f := Finding{ID: "allocation", Subject: GPUs}
	by := map[string]bool{}
	for _, a := range s.allocations {
		by[a.By] = true
	}
	switch {
	case by[recording.AllocatedByKubernetes]:
		f.State, f.Grade, f.Says = Good, "A", "the kubelet tells which pod each GPU is assigned to"
	case by[recording.AllocatedBySlurm]:
		f.State, f.Grade, f.Says = Good, "A", "Slurm tells which job each GPU is assigned to"
	case by[recording.AllocatedByExporter]:
		f.State, f.Grade, f.Says = Good, "B", "the labels of a dcgm-exporter tell whom the GPUs are assigned to"
	case by[recording.AllocatedByProcesses]:
		f.State, f.Grade, f.Says = Limited, "C", "a GPU counts as held while a process has a context on it; to whom it is promised is not known"
		f.Raise = "under Kubernetes mount /var/lib/kubelet/pod-resources; under Slurm run inside the job"
	default:
		f.State, f.Says = Missing, "who holds the GPUs is not known: neither the kubelet nor Slurm nor the driver tells"
		f.Raise = "under Kubernetes mount /var/lib/kubelet/pod-resources; under Slurm run inside the job"
	}
	return f
}

func sentence(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
