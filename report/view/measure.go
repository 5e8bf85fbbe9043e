package view

import (
	"math"
	"strconv"
	"strings"
)

// nbsp joins a number to its unit.
const nbsp = "\u00a0"

// minus is the sign in front of a negative number: as wide as a plus, unlike a hyphen.
const minus = "−"

// scale is one size in which a quantity is shown.
type scale struct {
	suffix string
	factor float64 // base units in one shown unit
}

// The one table of units. Base units are seconds, bytes and GPU-hours; smallest scale first.
var (
	timeScales = []scale{{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}}
	byteScales = []scale{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}
	hourScales = []scale{{"GPU-seconds", 1.0 / 3600}, {"GPU-minutes", 1.0 / 60}, {"GPU-hours", 1}}
)

// pick returns the largest scale in which v reads as 1 or more once rounded; the smallest for less.
func pick(table []scale, v float64) scale {
	v = math.Abs(v)
	for i := len(table) - 1; i > 0; i-- {
		if roundsUpTo(v, table[i-1], table[i]) {
			return table[i]
		}
	}
	return table[0]
}

// roundsUpTo reports whether v, shown in the lower scale with three digits, would reach one unit of the upper scale:
// 999.6 ms reads "1.00 s", not "1000 ms".
func roundsUpTo(v float64, lower, upper scale) bool {
	x := v / lower.factor
	return round(x, digitsAfter(x)) >= upper.factor/lower.factor*(1-1e-9) // 1e-3/1e-6 is a little more than 1000
}

// digitsAfter is how many decimals show x with three significant digits, at most three.
func digitsAfter(x float64) int {
	x = math.Abs(x)
	switch {
	case x >= 99.95 || x == 0:
		return 0
	case x >= 9.995:
		return 1
	case x >= 0.9995:
		return 2
	}
	return 3
}

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}

// decimal writes x with a fixed number of decimals. What is not zero never reads as zero: it becomes "<0.1" and the like.
func decimal(x float64, digits int) string {
	s := strconv.FormatFloat(math.Abs(x), 'f', digits, 64)
	if x != 0 && strings.Trim(s, "0.") == "" {
		least := strconv.FormatFloat(math.Pow10(-digits), 'f', digits, 64)
		if x < 0 {
			return ">" + minus + least
		}
		return "<" + least
	}
	if x < 0 {
		return minus + s
	}
	return s
}

// measure writes v in the scale that suits it, with three significant digits.
func measure(table []scale, v float64) string {
	s := pick(table, v)
	return s.show(v, digitsAfter(v/s.factor))
}

func (s scale) show(v float64, digits int) string { return join(decimal(v/s.factor, digits), s.suffix) }

func join(number, suffix string) string {
	if suffix == "" {
		return number
	}
	return number + nbsp + suffix
}

// duration writes a time: three digits below two minutes, two units above.
func duration(s float64) string {
	whole := int64(math.Round(math.Abs(s)))
	switch {
	case whole < 120:
		return measure(timeScales, s)
	case whole < 2*3600:
		return count(whole/60) + nbsp + "min" + nbsp + count(whole%60) + nbsp + "s"
	case whole < 2*86400:
		return count(whole/3600) + nbsp + "h" + nbsp + count(whole%3600/60) + nbsp + "min"
	}
	return count(whole/86400) + nbsp + "d" + nbsp + count(whole%86400/3600) + nbsp + "h"
}

// count writes a whole number, with commas between groups of three digits from 10,000 on.
func count[T int | int64 | uint64](n T) string {
	s := strconv.FormatUint(uint64(max(n, -n)), 10)
	if len(s) >= 5 {
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
	}
	if n < 0 {
		return minus + s
	}
	return s
}

// percent writes a ratio with two significant digits: 64 %, 4.8 %, 0.31 %, and "<0.01 %" for less. What is less than the
// whole never reads 100 %.
func percent(x float64) string { return percentDigits(x, percentDigit(x)) }

// percentDigit is how many decimals percent uses for a ratio.
func percentDigit(x float64) int {
	switch p := math.Abs(x * 100); {
	case p >= 9.95 || p == 0:
		return 0
	case p >= 0.995:
		return 1
	}
	return 2
}

func percentDigits(x float64, digits int) string {
	s := decimal(x*100, digits)
	if x < 1 && strings.HasPrefix(s, "100") {
		s = ">" + decimal(100-math.Pow10(-digits), digits)
	}
	return s + nbsp + "%"
}

// times writes a factor: 1.04×, 2.8×, 31×.
func times(x float64) string { return decimal(x, timesDigits(x)) + "×" }

func timesDigits(x float64) int {
	switch {
	case x < 1.995:
		return 2
	case x < 9.95:
		return 1
	}
	return 0
}

// plural writes a number and its noun: 1 rank, 2 ranks. A noun whose plural is irregular brings it along: "fetch|fetches".
func plural(n int, noun string) string {
	one, many, irregular := strings.Cut(noun, "|")
	if !irregular {
		many = one + "s"
	}
	if n == 1 {
		return "1" + nbsp + one
	}
	return count(n) + nbsp + many
}
