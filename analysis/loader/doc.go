// Package loader is a model of one rank's training loader: what was measured of it ([Parameters]), its configuration in numbers
// ([Law]), and how long a step takes in that configuration or another, by a replay of the recorded batches ([Model.Replay]).
//
// The law bounds a step, and its largest term names what binds:
//
//	W = 0:  step = L + C
//	W ≥ 1:  step ≥ max(C, shared, L/W, B/K)
//
// where C is a step with its batches already in memory, L one worker's build time of a batch when nothing is in its way, W the
// workers, "shared" the time per batch on something that serves one build at a time, B the CPU time per batch and K the cores.
//
// The package decides what binds and how far a prediction can be relied on. It refuses to predict from a replay that does not
// reproduce the step that was measured, and its wait ([Model.Trusted]). It knows nothing of files, clocks or records.
//
// Read [Parameters], [Law] and the package replay first.
package loader
