package dcgm

import (
	"fmt"
	"math"
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

// Blanks as dcgm_structs.h defines them; the three values above each say why (not found, not supported, not permitted).
const (
	blank32     = 0x7ffffff0
	blank64     = 0x7ffffffffffffff0
	blankDouble = 140737488355328.0 // 2^47

	statusNoData      = -14
	statusNotWatched  = -16
	blankNotFound     = 1
	blankNotSupported = 2
	blankNoPermission = 3
)

// value returns what the row says in the unit of its field, NaN and the reason if it says nothing. A status of 0 is not enough: the
// engine returns blanks with it (DCGM 4.6), and 32-bit blanks leak into 64-bit fields.
func (r row) value() (float64, string) {
	if r.status != 0 {
		return math.NaN(), statusText(r.status)
	}
	if r.us <= 0 {
		return math.NaN(), "no sample yet"
	}
	if r.double {
		v := math.Float64frombits(r.bits)
		if v >= blankDouble {
			return math.NaN(), blankText(int(v - blankDouble))
		}
		if math.IsNaN(v) || v < 0 {
			return math.NaN(), fmt.Sprintf("impossible value %v", v)
		}
		return v, ""
	}
	switch v := int64(r.bits); {
	case v >= blank64:
		return math.NaN(), blankText(int(v - blank64))
	case v >= blank32 && v <= blank32+blankNoPermission:
		return math.NaN(), blankText(int(v - blank32))
	case v < 0:
		return math.NaN(), fmt.Sprintf("impossible value %d", v)
	default:
		return float64(v), ""
	}
}

func blankText(n int) string {
	switch n {
	case blankNotFound:
		return "not found"
	case blankNotSupported:
		return "not supported by this GPU"
	case blankNoPermission:
		return "not permitted to the host engine"
	}
	return "blank"
}

func statusText(status int) string {
	switch status {
	case statusNoData:
		return "no sample yet"
	case statusNotWatched:
		return "not watched"
	case -6:
		return "not supported by this GPU"
	case -17:
		return "not permitted to the host engine"
	case -18:
		return "the GPU is lost"
	case -54:
		return "profiling is paused (dcgmi profile --resume ends that)"
	}
	return fmt.Sprintf("DCGM status %d", status)
}
