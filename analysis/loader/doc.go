// Package loader is a model of one rank's training loader: what was measured of it ([Parameters]) and the law that turns
// those numbers into the time of a step, now and after a change ([Law]).
//
// The law is
//
//	W = 0:  step = L + C
//	W ≥ 1:  step = max(C, shared, L/W, B/K)
//
// where C is a step with its batches already in memory, L one worker's build time of a batch when nothing is in its way, W the
// workers, "shared" the time per batch on something that serves one build at a time, B the CPU time per batch and K the cores.
//
// The package decides what binds and how far a prediction can be relied on. It refuses to predict from a law that does not
// reproduce the step that was measured ([Model.Trusted]). It knows nothing of files, clocks or records.
//
// Read [Parameters] and [Law] first.
package loader
