package dcgm

import "slices"

// Field ids (dcgm_fields.h of DCGM 4.6).
const (
	fieldUUID      = 54
	fieldName      = 50
	fieldSMClock   = 100 // MHz, int64
	fieldPower     = 155 // W, double
	fieldUtil      = 203 // GPU-util, percent, int64
	fieldUsed      = 252 // MiB, int64
	fieldEngine    = 1001
	fieldSM        = 1002
	fieldOccupancy = 1003
	fieldTensor    = 1004
	fieldDRAM      = 1005
	fieldFP32      = 1007
	fieldPCIeOut   = 1009 // bytes/s, int64; DCGM sees from the GPU: TX is to the host
	fieldPCIeIn    = 1010
	fieldNVLinkOut = 1011
	fieldNVLinkIn  = 1012
)

// wished are the profiling metrics that an A100 counts in one pass. 1006 and 1008 (FP64, FP16) share a pass with 1002 and are
// never asked for: together they would be multiplexed, and read 0 half of the time.
var wished = []uint16{fieldEngine, fieldSM, fieldOccupancy, fieldTensor, fieldDRAM, fieldFP32, fieldPCIeOut, fieldPCIeIn, fieldNVLinkOut, fieldNVLinkIn}

// device are the fields beside them. They are watched apart: a profiling field that fails would take them along.
var device = []uint16{fieldSMClock, fieldPower, fieldUtil, fieldUsed}

// metricGroup is a set of metrics that the engine can count together. Groups of one major cannot run at the same time.
type metricGroup struct {
	major, minor uint
	fields       []uint16
}

// pick returns the wished metrics that these groups count in one pass, none if SM activity is not among them. Of the groups of one
// major the one with SM activity is taken, else the one with most that is wished.
func pick(groups []metricGroup) []uint16 {
	best := map[uint]metricGroup{}
	for _, g := range groups {
		if had, ok := best[g.major]; !ok || worth(g) > worth(had) {
			best[g.major] = g
		}
	}
	var fields []uint16
	for _, f := range wished {
		for _, g := range best {
			if slices.Contains(g.fields, f) {
				fields = append(fields, f)
				break
			}
		}
	}
	if !slices.Contains(fields, fieldSM) {
		return nil
	}
	return fields
}

// worth orders the groups of one major.
func worth(g metricGroup) (n int) {
	for _, f := range g.fields {
		if f == fieldSM {
			n += len(wished)
		} else if slices.Contains(wished, f) {
			n++
		}
	}
	return n
}
