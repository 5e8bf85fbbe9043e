// Package phrase writes the few measured quantities that verdicts and fixes mention in their sentences, the same way in both.
package phrase

import "fmt"

// Duration writes seconds with the digits a reader needs.
func Duration(seconds float64) string {
	switch {
	case seconds < 0.1:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// Percent writes a share.
func Percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// Workers writes a number of workers with its noun.
func Workers(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

// Count writes a number with its noun.
func Count(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%.3g %ss", n, noun)
}

// Verb returns the form of a verb for n subjects.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Cores names the cores that a job may use.
func Cores(k float64) string {
	switch {
	case k == 1:
		return "the one usable core"
	case k == 2:
		return "both usable cores"
	case k == float64(int(k)):
		return fmt.Sprintf("all %d usable cores", int(k))
	}
	return fmt.Sprintf("the %.1f usable cores", k)
}
