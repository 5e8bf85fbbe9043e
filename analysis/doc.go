// Package analysis turns recordings into one [Result]: where the allocated GPU time went, whether the input pipeline is the
// cause, and which fix removes the most wait.
//
// It is an ordered list of pure passes. No file, clock or global is read here, so every behaviour is a table test on a tiny
// recording. It decides what a number means and refuses to guess: what was not measured stays missing, what contradicts
// itself is untrusted, and a prediction that the run does not support is not made.
//
// Read [Result] and Run first.
package analysis
