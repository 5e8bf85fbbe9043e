package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/stage"
)

// copyRate is what a worker copies finished tensors at, bytes of CPU time per second: one core, memory to memory.
const copyRate = 2e9

// gather is CPU per batch before collate: reading, decoding, transforming.
func (s state) gather() float64 { return math.Max(0, s.law.CPU-s.collate) }

// preprocessOnce stores what is the same every epoch. The public Uber case: caching raw files changed nothing, caching the
// finished arrays took GPU use from 10–15 % to over 60 %.
func preprocessOnce(j *job, s state) proposal {
	p := proposal{title: "preprocess once per data version", effort: dataJob}
	if !j.model.Known.Split {
		return proposal{}
	}
	p.how = "run decoding and every transform without randomness once, store the finished arrays (memory-mapped .npy, Arrow, shards of tensors), keep random augmentation in the dataset"
	p.needs = "disk for the finished arrays, a job that rebuilds them when data or transforms change"
	p.assumes = []string{"three quarters of the CPU time before collate are the same every epoch (interval: half to all); random augmentation stays"}
	grown := j.growth()
	if grown > 1 {
		p.assumes = append(p.assumes, "finished arrays are larger than the raw files, so an exclusive store is busy for longer")
	}
	copying := j.p.Batch.Bytes.Or(0) / copyRate
	if copying > 0.01*s.gather() {
		p.assumes = append(p.assumes, fmt.Sprintf("a worker copies finished arrays at %.0f GB/s", copyRate/1e9))
	}
	store := func(part float64) func(*state) {
		return func(s *state) {
			s.relieve(math.Max(0, part*s.gather()-copying))
			more := s.law.Shared * (grown - 1)
			s.law.Shared += more
			s.law.Off += more
		}
	}
	p.change, p.best, p.worst = store(0.75), store(1), store(0.5)
	if s, ok := j.inside(stage.Decode, stage.Join, stage.Tokenise, stage.Transform); ok {
		p.how += s.here()
		p.assumes[0] = s.assumption("decoding and what else is the same every epoch take")
		p.change, p.best, p.worst = store(s.part.Value), store(s.part.High), store(s.part.Low)
	}
	return p
}

// slowestLink is the least bandwidth, in bytes per second, at which an exclusive store is taken to be busy moving bytes. What
// moves fewer is held up by something else (a lock, a directory), and larger arrays do not make that longer.
const slowestLink = 1e6

// growth is how many times larger finished tensors are than what was read for them: 1 where unknown or smaller, or where no
// exclusive store would have to move them.
func (j *job) growth() float64 {
	read, ok := j.p.Batch.Read.Get()
	bytes, okBytes := j.p.Batch.Bytes.Get()
	if !ok || !okBytes || read <= 0 || j.now.law.Shared <= 0 || read < slowestLink*j.now.law.Shared {
		return 1
	}
	return math.Max(1, math.Min(bytes/read, 100))
}

// cheaperDecode takes another decoder. Measured gains are 1.3 to 1.8 per decode and next to nothing where a PIL image must come
// out in the end (F39).
func cheaperDecode(j *job, s state) proposal {
	if !j.model.Known.Split {
		return proposal{}
	}
	faster := func(by float64) func(*state) {
		return func(s *state) { s.relieve(s.gather() * (1 - 1/by)) }
	}
	p := proposal{
		title: "cheaper decoding", effort: fewLines,
		how:     "decode with libjpeg-turbo (simplejpeg, torchvision.io) at the size that is needed, resample audio with torchaudio, index arrays instead of data frames",
		needs:   "the decoder in the image; pixel values may differ slightly",
		assumes: []string{"CPU time before collate is decoding, and another decoder is 1.5 times as fast (interval: 1.05 to 1.8)"},
		change:  faster(1.5), best: faster(1.8), worst: faster(1.05),
	}
	if seen, ok := j.inside(stage.Decode); ok {
		part := func(of, by float64) func(*state) {
			return func(s *state) { s.relieve(of * s.gather() * (1 - 1/by)) }
		}
		p.how += seen.here()
		p.assumes = []string{seen.assumption("decoding takes"), "another decoder is 1.5 times as fast (interval: 1.05 to 1.8)"}
		p.change, p.best, p.worst = part(seen.part.Value, 1.5), part(seen.part.High, 1.8), part(seen.part.Low, 1.05)
	}
	return p
}

// augmentOnGPU moves transforms to the device. In the one public case with all numbers (F36) the step without loading grew from
// 129 to 145 ms and the wait went away; on a busy device it is the wrong fix (F72), which the law says by itself.
func augmentOnGPU(j *job, s state) proposal {
	if !j.model.Known.Split {
		return proposal{}
	}
	move := func(part float64) func(*state) {
		return func(s *state) {
			s.relieve(part * s.gather())
			s.shorten(-0.12 * s.law.Compute)
		}
	}
	p := proposal{
		title: "augment on the GPU, a batch at a time", effort: rewrite,
		how:     "move random augmentation from the dataset to the training step (kornia, torchvision.transforms.v2 on CUDA tensors, DALI)",
		needs:   "GPU memory for a batch before and after; other random numbers than before",
		assumes: []string{"half of the CPU time before collate is augmentation (interval: a fifth to four fifths), and the step's own work grows by 12 %"}, // F36,
		change:  move(0.5), best: move(0.8), worst: move(0.2),
	}
	if seen, ok := j.inside(stage.Augment); ok {
		p.how += seen.here()
		p.assumes = []string{seen.assumption("random augmentation takes"), "the step's own work grows by 12 %"} // F36
		p.change, p.best, p.worst = move(seen.part.Value), move(seen.part.High), move(seen.part.Low)
	}
	return p
}
