package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// manyReads is the number of files or requests per batch from which what each costs by itself is worth naming.
const manyReads = 4

// storageLatency: builds wait, workers hide it only in numbers that are not to be had, or it is many small reads that wait
// (F26, F27, F29, F32).
func storageLatency(s *subject) opinion {
	if !s.waits() || !s.m.Known.Build {
		return opinion{}
	}
	enough, _ := s.m.Enough(s.l)
	reads := max(s.p.Batch.Files.Or(0), s.p.Batch.Requests.Or(0))
	switch b := s.l.Binding(); {
	case !s.offCPU():
		off, whole := s.measured()
		return drop(fmt.Sprintf("builds compute rather than wait: %s of %s off the CPU", phrase.Duration(off), phrase.Duration(whole)))
	case b != loader.ByWorkers && s.l.Workers > 0:
		return opinion{}
	case enough <= s.l.WorkerLimit() && reads < manyReads:
		return drop(fmt.Sprintf("%s hide the waiting, and no crowd of small reads was seen", phrase.Workers(enough)))
	}
	off, whole := s.measured()
	title := fmt.Sprintf("a build waits %s of %s", phrase.Duration(off), phrase.Duration(whole))
	if reads >= manyReads {
		title += fmt.Sprintf(", for %.0f reads of %s each", reads, phrase.Duration(off/reads))
	}
	base := 0.6
	if s.p.Batch.Reads() {
		base = 0.85
	}
	o := find(Verdict{
		Title: fmt.Sprintf("%s%s: %s of the step is lost to it", s.small(), title, phrase.Percent(s.gain)), Confidence: s.sure(base),
		Evidence:    s.reads(s.build(s.wait())),
		FalsifiedBy: "the same files read from memory (tmpfs, a second pass over few of them) with builds no shorter",
	}, s.gain)
	if enough <= s.l.WorkerLimit() {
		o.weight *= 0.99 // beside too few workers, which one argument removes
	}
	return o
}

// measured is the off-CPU time of a build and the whole of it, as they were seen: the numbers of the evidence, which those of
// the law need not equal. The law's stand in where a build was not seen from both sides.
func (s *subject) measured() (off, whole float64) {
	o, okOff := s.p.Batch.OffCPU.Get()
	w, okWall := s.p.Batch.Wall.Get()
	if !okOff || !okWall || o.Value > w.Value {
		return s.l.Off, s.l.Build()
	}
	return o.Value, w.Value
}

// storageBandwidth: builds take longer in company, outside the CPU, and deliver at the rate of one alone (F28, F30; scenario S03).
func storageBandwidth(s *subject) opinion {
	if !s.waits() || !s.m.Known.Build || s.l.Workers == 0 {
		return opinion{}
	}
	if !s.m.Known.Shared {
		if s.offCPU() && s.l.Workers > 1 {
			return drop("whether builds hold each other up was not measured (no batch was built alone)")
		}
		return opinion{}
	}
	switch {
	case s.l.Binding() != loader.ByShared:
		return drop("off the CPU, builds take no longer in company than alone")
	case s.p.Batch.FromMemory():
		return drop("the bytes come from memory, so no store is slow")
	}
	alone, company := s.p.Solo.OffCPU.Or(none).Value, s.p.Batch.OffCPU.Or(none).Value
	what, base := "something that serves one at a time (a link, a disk, a lock)", 0.75
	e := s.reads(s.build(s.wait())).value("solo_off_cpu_seconds_per_batch", alone, "seconds", byAlone).value("shared_seconds", s.t.Shared, "seconds", byLaw)
	if read, ok := s.p.Batch.Read.Get(); ok && s.p.Batch.Reads() && read > 0 && s.l.Shared > 0 {
		what, base = fmt.Sprintf("a store that gives %.3g MB/s in all", read/s.l.Shared/1e6), 0.9
		e = e.value("read_bytes_per_second", read/s.l.Shared, "bytes", byLaw)
	}
	return find(Verdict{
		Title: fmt.Sprintf("%s%s queue for %s: a build waits %s in company and %s alone; %s of the step is lost to it", s.small(),
			phrase.Workers(s.l.Workers), what, phrase.Duration(company), phrase.Duration(alone), phrase.Percent(s.gain)),
		Confidence: s.sure(base), Evidence: e,
		FalsifiedBy: "a run with twice the workers whose step is clearly shorter",
	}, s.gain)
}

// serialRead: as above, and what builds read comes from memory: not a store is slow, they hold one lock while they read or unpack (F46).
func serialRead(s *subject) opinion {
	if !s.waits() || !s.m.Known.Build || s.l.Workers == 0 || !s.m.Known.Shared || s.l.Binding() != loader.ByShared || !s.p.Batch.FromMemory() {
		return opinion{}
	}
	alone, company := s.p.Solo.OffCPU.Or(none).Value, s.p.Batch.OffCPU.Or(none).Value
	return find(Verdict{
		Title: fmt.Sprintf("%s%s read one at a time, although the bytes come from memory: a lock, or a file system in user space; a build waits %s in company and %s alone; %s of the step is lost to it",
			s.small(), phrase.Workers(s.l.Workers), phrase.Duration(company), phrase.Duration(alone), phrase.Percent(s.gain)),
		Confidence: s.sure(0.7),
		Evidence: s.reads(s.build(s.wait())).value("solo_off_cpu_seconds_per_batch", alone, "seconds", byAlone).value("shared_seconds", s.t.Shared, "seconds", byLaw).
			num("bytes_from_disk_per_batch", s.p.Batch.FromDisk, "bytes", byBuilds),
		FalsifiedBy: "a run in which every worker opens the file for itself and takes no lock, whose step is no shorter",
	}, s.gain)
}

// reads is the evidence of what builds read.
func (s *subject) reads(e evidence) evidence {
	e = e.num("files_per_batch", s.p.Batch.Files, "count", byBuilds)
	e = e.num("requests_per_batch", s.p.Batch.Requests, "count", byBuilds)
	return e.num("bytes_per_batch", s.p.Batch.Read, "bytes", byBuilds)
}
