package host

import (
	"bytes"
	"fmt"
)

// stall is one file of pressure stall information: microseconds since boot in which at least one task (some) or every task
// that was not idle (full) waited for the resource. https://docs.kernel.org/accounting/psi.html
//
//	some avg10=0.22 avg60=0.17 avg300=0.64 total=8761
//	full avg10=0.22 avg60=0.16 avg300=0.59 total=8653
//
// The averages are left aside: two totals give the mean of exactly the window that is asked for.
type stall struct {
	some uint64
	full uint64 // unknown for the CPU before Linux 5.13, and always 0 for the CPU of the whole machine
}

func parseStall(b []byte) (stall, error) {
	s := stall{some: unknown, full: unknown}
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		key, rest := nextField(line)
		switch string(key) {
		case "some":
			s.some = stallTotal(rest)
		case "full":
			s.full = stallTotal(rest)
		}
	}
	if s.some == unknown {
		return s, fmt.Errorf("parsing pressure: %w", errFormat)
	}
	return s, nil
}

func stallTotal(fields []byte) uint64 {
	for len(fields) > 0 {
		var field []byte
		field, fields = nextField(fields)
		if total, ok := bytes.CutPrefix(field, []byte("total=")); ok {
			if v, ok := decimal(total); ok {
				return v
			}
		}
	}
	return unknown
}

// stalls are the three resources of one group of processes: the machine, or a control group.
type stalls struct{ cpu, io, memory stall }

// unknownStalls is what is known of a group whose files are missing.
var unknownStalls = stalls{stall{unknown, unknown}, stall{unknown, unknown}, stall{unknown, unknown}}

// overWindow returns the share of a window of nanoseconds that a stall total, in microseconds, grew by.
func overWindow(cur, prev, window uint64) float32 {
	d := growth(cur, prev)
	if d > unknown/1000 {
		return nan
	}
	return share(d*1000, window)
}
