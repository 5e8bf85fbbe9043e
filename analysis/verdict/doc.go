// Package verdict names what a job's GPUs wait for, from the loader's parameters and its law.
//
// A verdict is a signature: conditions on measured numbers, each with a public case behind it. It decides by sums over sums,
// never by medians (four workers that are too slow make one long wait and three of zero: F03, F26), and it subtracts what a
// hand-off costs at least before it calls a job data-bound. What was considered and rejected is listed with the number that
// rejected it. VERDICTS.md is the same list for people; a test holds the two together.
//
// Read [Judge] and signatures.go first; each family of signatures has a file.
package verdict
