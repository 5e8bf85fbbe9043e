// Package stage says where the time of a batch goes inside the code that builds it: reading, decoding, transforming, collating.
//
// What it starts from are looks at the stack of the building thread (SPEC §2, STACK), folded into a [Tree] by what called what.
// Which function is which kind of work stands in CLASSES.md, a table that a reader can check; what the table does not know is
// "other", never guessed. It refuses to say what a function costs that was seen too seldom: each share has an interval.
// Read [Tree] and [Split] first.
package stage
