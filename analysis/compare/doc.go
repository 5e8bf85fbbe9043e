// Package compare sets two results of one job side by side: before a change and after it.
//
// It decides which numbers of two runs may be held against each other, how sure a difference is, which of the fixes that the first run
// ranked were applied in the second, and whether they did what was predicted. It refuses more than it shows: what belongs to another
// machine, another batch or another amount of data is not compared, and the row says why; a difference that the intervals do not
// carry is no difference; a prediction is judged only where nothing but its fix was changed.
//
// Each side is one run. Its intervals hold what varies within the run; what varies from one run of a job to the next is in none of
// them, so a difference below [Trifle] is never called one.
//
// Read [Comparison] and [Row] first; [Run] fills them.
package compare
