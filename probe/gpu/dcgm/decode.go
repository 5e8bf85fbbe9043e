package dcgm

import (
	"fmt"
	"math"
	"strings"
)

// row is one returned value, freed of its 4 KiB of blob.
type row struct {
	entity entity
	field  uint16
	us     int64 // the engine's wall clock, µs; 0 = no sample
	status int   // a dcgmReturn_t; not 0 = no value
	double bool
	bits   uint64 // of the double or the int64
}

// entity is what DCGM gives numbers to: a GPU, or a slice of one.
type entity struct {
	kind uint // dcgm_field_entity_group_t
	id   uint
}

// value is what a row says in the unit of its field.
type value struct {
	number     float64 // NaN = nothing
	why        string  // of NaN
	impossible bool    // what it says cannot be true
}

// Blanks as dcgm_structs.h defines them; the three values above each say why (not found, not supported, not permitted).
const (
	blank32     = 0x7ffffff0
	blank64     = 0x7ffffffffffffff0
	blankDouble = 140737488355328.0 // 2^47
	blankString = "<<<"             // "<<<NULL>>>", "<<<NOT_FOUND>>>" …

	blankNotFound     = 1
	blankNotSupported = 2
	blankNoPermission = 3
)

// value decodes the row. A status of 0 is not enough: the engine returns blanks with it (DCGM 4.6), and 32-bit blanks leak into 64-bit
// fields.
func (r row) value() value {
	switch {
	case r.status != 0:
		return nothing(statusText(r.status))
	case r.us <= 0:
		return nothing("no sample yet")
	case r.double:
		return decodeDouble(math.Float64frombits(r.bits))
	}
	return decodeInt(int64(r.bits))
}

func nothing(why string) value { return value{math.NaN(), why, false} }

func decodeDouble(v float64) value {
	switch {
	case v >= blankDouble && !math.IsInf(v, 1):
		return nothing(blankText(int(v - blankDouble)))
	case math.IsNaN(v) || math.IsInf(v, 0) || v < 0:
		return value{math.NaN(), fmt.Sprintf("impossible value %v", v), true}
	}
	return value{number: v}
}

func decodeInt(v int64) value {
	switch {
	case v >= blank64:
		return nothing(blankText(int(v - blank64)))
	case v >= blank32 && v <= blank32+blankNoPermission:
		return nothing(blankText(int(v - blank32)))
	case v < 0:
		return value{math.NaN(), fmt.Sprintf("impossible value %d", v), true}
	}
	return value{number: float64(v)}
}

// decodeString returns "" for a blank.
func decodeString(s string) string {
	if strings.HasPrefix(s, blankString) {
		return ""
	}
	return s
}

// blankText says what a blank means. A plain one is all that is left of an NVML error on counters of Hopper and newer.
func blankText(n int) string {
	switch n {
	case blankNotFound:
		return "not found"
	case blankNotSupported:
		return "not supported by this GPU"
	case blankNoPermission:
		return "not permitted to the host engine"
	}
	return "blank, without a reason: the log of the host engine may have it"
}

func statusText(status int) string {
	switch status {
	case -6:
		return "not supported by this GPU"
	case -14:
		return "none has come yet"
	case -15:
		return "stale"
	case -16:
		return "not watched"
	case -17:
		return "not permitted to the host engine"
	case -18:
		return "the GPU is lost"
	case -54:
		return "profiling is paused (dcgmi profile --resume ends that)"
	}
	return fmt.Sprintf("DCGM status %d", status)
}
