// Package analysis turns recordings into one [Result]: where the allocated GPU time went, whether the input pipeline is the
// cause, and which fix removes the most wait.
//
// It is an ordered list of pure passes. No file, clock or global is read here, so every behaviour is a table test on a tiny
// recording. It decides what a number means and refuses to guess: what was not measured stays missing, what contradicts
// itself is untrusted, and a prediction that the run does not support is not made.
//
// [Run] is the table of contents, and study its chapter on single ranks: each pass is a method in a file of that name. Beneath it, load folds records into timelines,
// ledger books GPU time, baseline judges the cached-data test, loader models the training loader, verdict and fixes say what
// that means, and stat gives every number its interval.
//
// Read [Result] and [Run] first.
package analysis
