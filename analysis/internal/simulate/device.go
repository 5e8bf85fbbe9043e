package simulate

import (
	"math"
	"math/rand/v2"

	"github.com/datawait/datawait/probe/recording"
)

// device runs launches one after another.
type device struct {
	end  int64
	busy [][2]int64
	ends []int64 // of each launch, for the queue's depth
}

// launch queues work at host time now and returns when the host may go on: at once, or when few enough launches are queued.
func (d *device) launch(now, duration int64, depth int) int64 {
	begin := max(now, d.end)
	d.end = begin + duration
	d.busy = append(d.busy, [2]int64{begin, d.end})
	d.ends = append(d.ends, d.end)
	if n := len(d.ends) - 1 - depth; n >= 0 {
		return max(now, d.ends[n])
	}
	return now
}

// windows reads the counters.
func (d *device) windows(ref uint16, j Job, end int64) (all []recording.GPU) {
	i, noise := 0, rand.New(rand.NewPCG(uint64(ref), 1))
	for begin := int64(origin); begin < end; begin += j.Window {
		until := min(begin+j.Window, end)
		for i > 0 && d.busy[i-1][1] > begin {
			i--
		}
		sum := int64(0)
		for ; i < len(d.busy) && d.busy[i][0] < until; i++ {
			sum += max(0, min(until, d.busy[i][1])-max(begin, d.busy[i][0]))
		}
		resident := float32(float64(sum) / float64(until-begin))
		sm := resident*j.SM + (1-resident)*j.IdleSM
		if j.Noise > 0 {
			sm += j.Noise * (2*noise.Float32() - 1)
		}
		all = append(all, recording.GPU{Flags: recording.GPUEmulated | recording.GPUHeldKnown | recording.GPUHeld, Ref: ref,
			Begin: uint64(begin + j.Lag), End: uint64(until + j.Lag), SM: min(1, max(0, sm)), Resident: resident, Tensor: resident * j.SM / 2,
			DRAM: nan, Copy: nan, Power: nan, SMClock: nan, Memory: nan})
	}
	return all
}

var nan = float32(math.NaN())
