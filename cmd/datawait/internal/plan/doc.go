// Package plan decides when each block of the cached-data test runs, and when the run is parked.
//
// It sees what the rings say of themselves a few times a second ([View]) and answers with a plan in step numbers
// ([Decision]), so that every rank switches on the same step. It is pure: time comes in with the view, nothing is read
// or written here.
//
// # How a test is laid out
//
// The run is watched until it is steady. Then blocks follow in pairs, a live block and a cached one that replays its
// batches:
//
//	step  0 ─────── steady ── lead ──┬─────┬────────┬─────┬────────┬─ … ─┬─ park
//	                                 │live │ cached │live │ cached │     │
//	                                 └─────┴────────┴─────┴────────┴─────┘
//
// A block consists of steps in which the hook settles it and of at least ten steps and ten counter windows that
// count. How long a cached step takes is not known before the first cached block has run, so pairs are planned one
// after the other: the next one is appended while the last one runs, as late as the lead allows, with what was
// measured until then.
//
// Not done: planning all pairs at once. A first guess of the cached step that is off by four makes a test of 20
// seconds one of 80, or blocks of two windows.
//
// Read [Planner] and [Options] first.
package plan
