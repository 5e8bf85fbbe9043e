package gpu

import "github.com/datawait/datawait/probe/recording"

// Bounds of what contradicts itself. One warp on one SM of 132 reads 0.0076.
const (
	nothingActive = 0.002
	busyAllTime   = 0.9
	rounding      = 1.02
)

// Contradiction says why a window cannot be believed, "" if it can. Such a window is untrusted, and never idle:
//   - SM activity reads 0 while a kernel was there nearly all the time and nothing else counted either: the profiling counters
//     have stopped (after Xid 31, NVIDIA/DCGM issue 303);
//   - a ratio above 1: a MIG slice counted wrongly (issue 152), or a blank that leaked.
//
// pipes may be nil.
func Contradiction(w recording.GPU, pipes *recording.GPUPipes) string {
	for _, r := range []float32{w.SM, w.Resident, w.Tensor, w.DRAM, w.Copy} {
		if r > rounding {
			return "a ratio above 1"
		}
	}
	if pipes != nil {
		for _, r := range []float32{pipes.Engine, pipes.Occupancy, pipes.FP32} {
			if r > rounding {
				return "a ratio above 1"
			}
		}
	}
	if w.SM < nothingActive && w.Resident >= busyAllTime {
		return "SM activity reads 0 while a kernel was resident: the profiling counters have stopped"
	}
	if w.SM < nothingActive && w.Tensor > 0.05 {
		return "tensor pipes were active and no SM was"
	}
	return ""
}
