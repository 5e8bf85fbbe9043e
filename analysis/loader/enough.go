package loader

// NearEnough is the part of a step that a worker more must win to be worth having.
const NearEnough = 0.02

// Enough returns the number of workers from which one more does not win what is worth having, and whether any does: the law's number,
// which is right for even builds, and as many more as uneven ones need in the replay.
func (m Model) Enough(l Law) (int, bool) {
	w, ok := l.Enough(NearEnough)
	with := func(w int) float64 {
		l.Workers = w
		return m.Replay(l)
	}
	for most := l.WorkerLimit(); ok && w < most; w++ {
		if step := with(w); !(step-with(w+1) >= NearEnough*step) {
			break
		}
	}
	return w, ok
}
