package view

import (
	"math"
	"strings"
	"testing"
)

// spaced writes no-break spaces as "_", so that tables here can be read.
func spaced(s string) string { return strings.ReplaceAll(s, nbsp, "_") }

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0_%", 1: "100_%", 0.64: "64_%", 0.048: "4.8_%", 0.0031: "0.31_%", 1.02: "102_%",
		// The boundaries between two, one and no decimals.
		0.0994: "9.9_%", 0.0996: "10_%", 0.00994: "0.99_%", 0.00996: "1.0_%",
		// Something never reads as nothing, and less than the whole never as the whole.
		0.0001: "0.01_%", 0.00004: "<0.01_%", -0.00004: ">−0.01_%", 0.994: "99_%", 0.996: ">99_%", math.Nextafter(1, 0): ">99_%",
		-0.032: "−3.2_%", -0.32: "−32_%",
	} {
		if got := spaced(percent(x)); got != want {
			t.Errorf("percent(%v): got %s, want %s", x, got, want)
		}
	}
}

// Crossing a boundary never adds a digit: 9.95 % reads 10 %, not 10.0 %.
func TestPercentHasTwoDigits(t *testing.T) {
	for x := 0.001; x < 0.99; x += 0.00001 {
		if s := percent(x); len(strings.Trim(strings.ReplaceAll(s, ".", ""), "0"+nbsp+"%")) > 2 {
			t.Fatalf("percent(%v): %s", x, s)
		}
	}
}

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		table []scale
		x     float64
		want  string
	}{
		{timeScales, 0.0442, "44.2_ms"}, {timeScales, 0.000_0044, "4.40_µs"}, {timeScales, 3e-9, "3.00_ns"}, {timeScales, 0, "0_ns"}, {timeScales, 161.2, "161_s"},
		// What rounds up to a thousand of a unit is one of the next.
		{timeScales, 0.999_4, "999_ms"}, {timeScales, 0.999_6, "1.00_s"}, {timeScales, math.Nextafter(0.9995, 0), "999_ms"}, {timeScales, 0.000_999_6, "1.00_ms"},
		{timeScales, 0.099_94, "99.9_ms"}, {timeScales, 0.099_96, "100_ms"}, {timeScales, 0.009_994, "9.99_ms"}, {timeScales, 0.009_996, "10.0_ms"},
		{byteScales, 1023, "1023_B"}, {byteScales, 1024, "1.00_KiB"}, {byteScales, 1023.6 * 1024, "1.00_MiB"}, {byteScales, 4.6e6, "4.39_MiB"},
		{hourScales, 5.37 / 60, "5.37_GPU-minutes"}, {hourScales, 2, "2.00_GPU-hours"}, {timeScales, -0.0442, "−44.2_ms"},
	} {
		if got := spaced(measure(c.table, c.x)); got != c.want {
			t.Errorf("measure(%v): got %s, want %s", c.x, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for x, want := range map[float64]string{
		0.0442: "44.2_ms", 119.4: "119_s", 119.6: "2_min_0_s", 161.2: "2_min_41_s", 7199.4: "119_min_59_s", 7199.6: "2_h_0_min", 86399: "23_h_59_min",
		172799.6: "2_d_0_h", 200000: "2_d_7_h",
	} {
		if got := spaced(duration(x)); got != want {
			t.Errorf("duration(%v): got %s, want %s", x, got, want)
		}
	}
}

func TestCountAndTimes(t *testing.T) {
	for n, want := range map[int]string{0: "0", 9999: "9999", 10000: "10,000", 7013456: "7,013,456", -12345: "−12,345", -9: "−9", math.MinInt64 + 1: "−9,223,372,036,854,775,807"} {
		if got := count(n); got != want {
			t.Errorf("count(%d): got %s, want %s", n, got, want)
		}
	}
	for x, want := range map[float64]string{1.044: "1.04×", 1.994: "1.99×", 1.996: "2.0×", 2.78: "2.8×", 9.94: "9.9×", 9.96: "10×", 31.2: "31×"} {
		if got := times(x); got != want {
			t.Errorf("times(%v): got %s, want %s", x, got, want)
		}
	}
	if got := spaced(plural(1, "fetch|fetches") + plural(2, "fetch|fetches") + plural(0, "rank")); got != "1_fetch2_fetches0_ranks" {
		t.Errorf("plurals: got %s", got)
	}
}

// An interval is rounded outward, with the decimals of its value; noise of floating point is none.
func TestSpan(t *testing.T) {
	for _, c := range []struct {
		style            style
		value, low, high float64
		want             string
	}{
		{scaleStyle(timeScales, 0.0186), 0.0186, 0.0179, 0.0198, "17.9–19.8"}, {scaleStyle(timeScales, 0.0186), 0.0186, 0.01792, 0.01981, "17.9–19.9"},
		{percentStyle, 0.636, 0.627, 0.645, "62–65"}, {percentStyle, 0.048, 0.044, 0.052, "4.4–5.2"}, {timesStyle, 1.002, 0.996, 1.009, "0.99–1.01"},
		{scaleStyle(timeScales, 0.004), 0.004, -0.0003, 0.0012, "−0.30 to 1.20"}, {percentStyle, 0.004, 0, 0.011, "0.00–1.10"},
		{percentStyle, 0.3, 0.1, 0.99999, "10–100"},
	} {
		if got := c.style.span(c.value, c.low, c.high); got != c.want {
			t.Errorf("span of %v (%v, %v): got %s, want %s", c.value, c.low, c.high, got, c.want)
		}
	}
}

// Parts are rounded so that the shown numbers add up to the shown whole, and none is off by more than one unit.
func TestApportion(t *testing.T) {
	st := scaleStyle(timeScales, 0.0442)
	for _, c := range []struct {
		parts []float64
		whole float64
		want  string
	}{
		{[]float64{0.0281, 0.0004, 0.0149, 0.0008}, 0.0442, "28.1 0.4 14.9 0.8"},
		{[]float64{0.01114, 0.01114, 0.01114, 0.01078}, 0.0442, "11.2 11.1 11.1 10.8"},
		{[]float64{0.02208, 0.02208, 0.00004}, 0.0442, "22.1 22.1 <0.1"},
		{[]float64{0.01, 0.01}, 0.0442, "10.0 10.0"}, // they do not add up: each for itself
		{nil, 0.0442, ""},
	} {
		if got := strings.Join(apportion(c.parts, c.whole, st), " "); got != c.want {
			t.Errorf("apportion(%v): got %s, want %s", c.parts, got, c.want)
		}
	}
}
