//go:build linux && cgo

package nvml

import (
	"math"
	"testing"

	bind "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A sample says of what type it is: the low bits of a double 50.0 are 0, which would read as an idle GPU.
func TestASampleIsReadAsWhatItSaysItIs(t *testing.T) {
	for _, c := range []struct {
		kind bind.ValueType
		bits uint64
		want float64
	}{
		{bind.VALUE_TYPE_UNSIGNED_INT, 0xdeadbeef<<32 | 50, 50}, {bind.VALUE_TYPE_DOUBLE, math.Float64bits(50), 50}, {bind.VALUE_TYPE_UNSIGNED_LONG, 50, 50},
		{bind.VALUE_TYPE_UNSIGNED_LONG_LONG, 50, 50}, {bind.VALUE_TYPE_SIGNED_LONG_LONG, math.MaxUint64, -1}, {bind.VALUE_TYPE_SIGNED_INT, 0xffffffff, -1},
		{bind.VALUE_TYPE_COUNT, 50, math.NaN()},
	} {
		var value [8]byte
		for i := range value {
			value[i] = byte(c.bits >> (8 * i))
		}
		if got := number(c.kind, value); got != c.want && !(got != got && c.want != c.want) {
			t.Errorf("type %d, %#x: %v, want %v", c.kind, c.bits, got, c.want)
		}
	}
}
