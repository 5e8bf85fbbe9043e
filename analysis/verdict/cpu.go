package verdict

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stage"
)

// cpuTransform: builds compute, and their CPU time fills the cores, or would as soon as there are enough workers (F36–F43;
// scenarios S05, S06, S10). A collate that takes most of it is named.
func cpuTransform(s *subject) opinion {
	if !s.waits() || !s.m.Known.Build {
		return opinion{}
	}
	b := s.l.Binding()
	switch {
	case !s.m.Known.Split:
		return drop("the CPU time of builds was not seen")
	case !s.onCPU():
		off, whole := s.measured()
		return drop(fmt.Sprintf("builds wait rather than compute: %s of %s off the CPU", phrase.Duration(off), phrase.Duration(whole)))
	case b == loader.ByShared:
		return drop("a shared resource binds before the CPU does")
	}
	share := s.gain
	if b != loader.ByCores && s.spareCores() {
		share = s.share(s.coresWithEnough() - s.l.Compute)
		if share < Notable {
			return drop(fmt.Sprintf("the cores have room: builds take %s of CPU a step on %s", phrase.Duration(s.l.Fetches*s.l.Work), s.cores()))
		}
	}
	e := s.build(s.wait()).value("core_seconds", s.coresWithEnough(), "seconds", byLaw).num("usable_cores", s.p.Host.Usable, "cores", byHost)
	o := find(Verdict{
		Title: s.small() + s.transformTitle(share), Confidence: s.sure(0.9),
		Evidence:    e.num("collate_seconds_per_batch", s.p.Batch.Collate, "seconds", byBuilds),
		FalsifiedBy: "a run on twice as many cores, with as many workers, whose step is no shorter",
	}, share)
	return o
}

// coresWithEnough is the core term once there are workers to fill it.
func (s *subject) coresWithEnough() float64 {
	l := s.l
	l.Workers = max(l.Workers, 1)
	return l.Terms().Cores
}

func (s *subject) transformTitle(share float64) string {
	work, of := phrase.Duration(s.l.Work), phrase.Percent(share)
	if c, ok := s.p.Batch.Collate.Get(); ok && c >= 0.5*s.l.Build() {
		return fmt.Sprintf("building a batch takes %s of CPU, most of it in collate (%s): %s of the step is lost to it", work, phrase.Duration(c), of)
	}
	if s.l.Binding() == loader.ByCores {
		return fmt.Sprintf("building a batch takes %s of CPU%s and keeps %s full: %s of the step is lost to it", work, s.mostly(), s.cores(), of)
	}
	return fmt.Sprintf("building a batch takes %s of CPU%s, %s of a step even with %s full: %s of the step waits for it", work, s.mostly(),
		phrase.Duration(s.coresWithEnough()), s.cores(), of)
}

// mostly names the kind of work and the function that computes most, where looks at stacks found one that stands out: a third of a
// batch's computing at the least.
func (s *subject) mostly() string {
	if s.p.Inside == nil {
		return ""
	}
	var most stage.Function
	var class stage.Class
	whole := 0.0
	for _, p := range s.p.Inside.Parts {
		whole += p.On.Value
		for _, f := range p.Functions {
			if f.On > most.On {
				most, class = f, p.Class
			}
		}
	}
	if whole <= 0 || most.On < whole/3 {
		return ""
	}
	kind := string(class) + " in "
	if class == stage.Other {
		kind = ""
	}
	return fmt.Sprintf(", %s of it %s%s", phrase.Percent(most.On/whole), kind, most.Name)
}

func (s *subject) cores() string { return phrase.Cores(math.Min(s.l.WorkerCores, s.l.JobCores)) }

// cpuCapped: builds fill the cores they may use, and the host has more (F11–F15; scenario S09, fixture M10).
func cpuCapped(s *subject) opinion {
	if !s.waits() || !s.m.Known.Split || !s.m.Known.Cores {
		return opinion{}
	}
	limit, cores, of := s.cap()
	if limit == "" {
		return opinion{}
	}
	if s.coresWithEnough() < 0.8*s.step {
		return drop(fmt.Sprintf("%s leaves %.3g of %.3g cores, but builds do not fill them", limit, cores, of))
	}
	e := s.wait().num("usable_cores", s.p.Host.Usable, "cores", byHost).num("cores", s.p.Host.Online, "cores", byHost).
		num("affinity_cores", s.p.Host.Affinity, "cores", byHost).num("quota_cores", s.p.Host.Quota, "cores", byHost).
		num("throttled_ratio", s.p.Host.Throttled, "ratio", byHost).num("runq_seconds_per_batch", s.p.Batch.RunQueue, "seconds", byBuilds).
		est("cpu_seconds_per_batch", s.p.Batch.CPU, "seconds", byBuilds)
	o := find(Verdict{
		Title:      fmt.Sprintf("%s%s leaves the workers %.3g of %.3g cores, and builds fill them: %s of the step is lost to it", s.small(), limit, cores, of, phrase.Percent(s.gain)),
		Confidence: s.sure(0.95), Evidence: e,
		FalsifiedBy: "a run without the limit whose step is no shorter",
	}, s.gain)
	return o
}

// cap names the limit that is least, what it leaves and of how many cores.
func (s *subject) cap() (name string, cores, of float64) {
	h := s.p.Host
	inf := math.Inf(1)
	affinity, quota, cpuset, online := h.Affinity.Or(inf), h.Quota.Or(inf), h.Cpuset.Or(inf), h.Online.Or(inf)
	job := min(quota, cpuset, online)
	switch {
	case affinity < 0.95*job && !math.IsInf(job, 1):
		return "the workers' affinity", affinity, job
	case math.IsInf(online, 1):
		return "", 0, 0
	case quota < 0.95*online && quota <= cpuset:
		return "the CPU quota", quota, online
	case cpuset < 0.95*online:
		return "the cpuset", cpuset, online
	}
	return "", 0, 0
}

// threadOversubscription: more threads than cores, workers that use more CPU than their building thread, and full cores
// (F06–F09; scenario S07). Adding workers or cores changes nothing then.
func threadOversubscription(s *subject) opinion {
	threads, many := s.m.TooManyThreads()
	if !many || !s.waits() {
		return opinion{}
	}
	if !s.l.Helped() || s.spareCores() {
		return drop(fmt.Sprintf("%d threads per worker are allowed, but workers hardly use more CPU than their building thread", threads))
	}
	return find(Verdict{
		Title: fmt.Sprintf("each of %s runs %d threads on %s: they mostly wait for each other; %s of the step is lost to it",
			phrase.Workers(s.l.Workers), threads, s.cores(), phrase.Percent(s.gain)),
		Confidence: s.sure(0.85),
		Evidence: s.build(s.wait()).value("threads_per_worker", float64(threads), "count", byHost).
			num("process_cpu_seconds_per_batch", s.p.Batch.ProcessCPU, "seconds", byBuilds).num("usable_cores", s.p.Host.Usable, "cores", byHost),
		FalsifiedBy: "a run with one thread per worker whose step is no shorter",
	}, s.gain)
}
