// Package fixes ranks changes to a training job by the time they would save, and says of common advice that it would save none.
//
// Every fix is a pure change to the loader's configuration ([loader.Law]) or to the epoch start, priced by a replay before and after. It is
// never priced above what the step can reach with its batches in memory, unless the fix changes that too. Where the replay does
// not reproduce the step that ran, nothing is ranked: the reason is the result.
//
// What a fix assumes beyond the measurements (how much faster a decoder is, how much of the work is the same every epoch) is
// written in it, widens its interval, and comes from a public case that the code names (Fxx).
//
// Read [Rank] and the list in catalogue.go first; each family of fixes has a file.
package fixes
