package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

const (
	muchMore  = 16      // bytes read for each that a batch holds in the end
	muchRead  = 1 << 20 // bytes per batch
	stillDisk = 0.3     // of what later epochs read
)

// coldCache: the first epoch's batches took far longer to build than later ones (F33; scenario S12). It mends itself.
func coldCache(s *subject) opinion {
	c := s.p.Around.Cold
	switch {
	case c.Times == 0:
		return opinion{}
	case c.Share < Notable:
		return drop(fmt.Sprintf("the first epoch's batches took %.1f times as long to build, %s of the wall time in all", c.Times, phrase.Percent(c.Share)))
	}
	return find(Verdict{
		Title: fmt.Sprintf("the first epoch was cold: its batches took %.1f times as long to build as later ones, %s once; a long run needs nothing, a short one its data in place before it starts",
			c.Times, phrase.Duration(c.Seconds)),
		Confidence:  0.85,
		Evidence:    evidence{}.value("first_build_to_later", c.Times, "times", byBuilds).value("first_epoch_more_seconds", c.Seconds, "seconds", bySteps).value("share_of_wall", c.Share, "ratio", bySteps),
		FalsifiedBy: "a second run, started at once, whose first epoch takes as long",
	}, c.Share)
}

// cacheThrash: later epochs read from the disk what an earlier one read already: the page cache does not hold the dataset (F34). With LRU
// and a new order every epoch, half of the dataset in memory gives 15 % hits.
func cacheThrash(s *subject) opinion {
	read, ok := s.p.Around.Again.Read.Get()
	disk, okDisk := s.p.Around.Again.FromDisk.Get()
	if !ok || !okDisk || read < 4096 || !s.waits() {
		return opinion{}
	}
	switch part := disk / read; {
	case part < stillDisk:
		return drop(fmt.Sprintf("of what epochs after the first read, %s comes from a disk", phrase.Percent(part)))
	case !s.offCPU():
		return drop("builds compute rather than wait for the disk")
	default:
		o := find(Verdict{
			Title: fmt.Sprintf("%severy epoch reads from the disk again what the one before it read (%s of its bytes): memory does not hold the dataset; %s of the step is lost to waiting", s.small(),
				phrase.Percent(part), phrase.Percent(s.gain)),
			Confidence:  s.sure(0.8),
			Evidence:    s.reads(s.build(s.wait())).value("from_disk_in_later_epochs", part, "ratio", byBuilds),
			FalsifiedBy: "a run with memory for the whole dataset whose later epochs are no shorter",
		}, s.gain)
		o.weight *= 0.98 // beside what binds the step now
		return o
	}
}

// readAmplification: builds read many times what their batch holds in the end: whole row groups for single rows (F44, F47).
func readAmplification(s *subject) opinion {
	read, ok := s.p.Batch.Read.Get()
	held, okHeld := s.p.Batch.Bytes.Get()
	if !ok || !okHeld || held <= 0 || read < muchMore*held || read < muchRead || !s.waits() {
		return opinion{}
	}
	if !s.offCPU() {
		return drop("builds read far more than they use, and compute rather than wait")
	}
	return find(Verdict{
		Title: fmt.Sprintf("%sa build reads %s for a batch of %s, %.0f times as much: %s of the step is lost to waiting", s.small(),
			megabytes(read), megabytes(held), read/held, phrase.Percent(s.gain)),
		Confidence: s.sure(0.75), Evidence: s.reads(s.build(s.wait())).value("batch_bytes", held, "bytes", byBuilds),
		FalsifiedBy: "the same samples from a file that holds nothing else, with builds no shorter",
	}, s.gain)
}

func megabytes(v float64) string { return fmt.Sprintf("%.3g MB", v/1e6) }
