package nvml

// energy is one look at a GPU's energy counter.
type energy struct {
	t     uint64 // ns
	mj    uint64 // since the driver loaded its state of the GPU
	known bool
}

// power returns the mean watts between two looks, else what a single reading says. A counter that went back was reset with the
// driver's state, and tells nothing of this window.
func power(before, now energy, single func() float32) float32 {
	if !before.known || !now.known || now.mj < before.mj || now.t <= before.t {
		return single()
	}
	return float32(float64(now.mj-before.mj) * 1e6 / float64(now.t-before.t)) // mJ per ns are MW
}
