package promserver

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Expand writes a history in OpenMetrics' text format from lines such as
//
//	every 2m from 2026-11-29T00:00:00Z
//	datawait_steps_total{rank="0"} 0+60x180
//
// where 0+60x180 is 0, 60, 120 and so on, 181 values, as in promtool's unit tests. Lines of one metric stand together.
func Expand(notation string) ([]byte, error) {
	var out bytes.Buffer
	var every time.Duration
	var from time.Time
	var last string
	for line := range strings.Lines(notation) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "every "):
			var length, begin string
			_, err := fmt.Sscanf(line, "every %s from %s", &length, &begin)
			if err == nil {
				every, err = time.ParseDuration(length)
			}
			if err == nil {
				from, err = time.Parse(time.RFC3339, begin)
			}
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
		default:
			end := strings.LastIndexByte(line, ' ')
			start, step, n, ok := values(line[end+1:])
			if end < 0 || !ok || every <= 0 {
				return nil, fmt.Errorf("%q is no series, such as up{} 1+0x10", line)
			}
			series := line[:end]
			if name, _, _ := strings.Cut(series, "{"); name != last {
				last = name
				fmt.Fprintf(&out, "# TYPE %s\n", kindOf(name))
			}
			for i := range n + 1 {
				fmt.Fprintf(&out, "%s %g %d\n", series, start+float64(i)*step, from.Add(time.Duration(i)*every).Unix())
			}
		}
	}
	out.WriteString("# EOF\n")
	return out.Bytes(), nil
}

// values reads 0+60x180.
func values(notation string) (start, step float64, n int, ok bool) {
	first, rest, plus := strings.Cut(notation, "+")
	second, third, times := strings.Cut(rest, "x")
	start, err1 := strconv.ParseFloat(first, 64)
	step, err2 := strconv.ParseFloat(second, 64)
	n, err3 := strconv.Atoi(third)
	return start, step, n, plus && times && err1 == nil && err2 == nil && err3 == nil
}

// kindOf is the family and type of a metric, by its name.
func kindOf(name string) string {
	if family, counter := strings.CutSuffix(name, "_total"); counter {
		return family + " counter"
	}
	return name + " gauge"
}
