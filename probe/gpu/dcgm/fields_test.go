package dcgm

import (
	"slices"
	"testing"
)

// of an A100, as dcgmi profile --list shows them: A.1, A.2 and A.3 cannot be counted together.
var a100 = []metricGroup{{0, 2, []uint16{1006}}, {0, 1, []uint16{1002, 1003, 1004, 1007}}, {0, 3, []uint16{1008}}, {1, 0, []uint16{1005}},
	{2, 0, []uint16{1009, 1010}}, {3, 0, []uint16{1001}}, {4, 0, []uint16{1011, 1012}}}

func TestWhatAnA100CountsInOnePassIsAskedForAndNoMore(t *testing.T) {
	if got, want := pick(a100), []uint16{1001, 1002, 1003, 1004, 1005, 1007, 1009, 1010, 1011, 1012}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWhatAGPULacksIsNotAskedFor(t *testing.T) {
	for _, c := range []struct {
		groups []metricGroup
		want   []uint16
	}{
		{[]metricGroup{{0, 1, []uint16{1002, 1004}}, {1, 0, []uint16{1005}}}, []uint16{1002, 1004, 1005}}, // no NVLink, no PCIe
		{[]metricGroup{{0, 0, []uint16{1004, 1005, 1007}}, {0, 1, []uint16{1002}}}, []uint16{1002}},       // SM activity before all that excludes it
		{[]metricGroup{{0, 0, []uint16{1001, 1004}}}, nil},                                                // no SM activity, nothing
		{nil, nil},
	} {
		if got := pick(c.groups); !slices.Equal(got, c.want) {
			t.Errorf("of %v: %v, want %v", c.groups, got, c.want)
		}
	}
}

// TestFP64AndFP16AreNeverAskedFor: they would be multiplexed with SM activity, which then reads 0 half of the time.
func TestFP64AndFP16AreNeverAskedFor(t *testing.T) {
	for _, f := range []uint16{1006, 1008} {
		if slices.Contains(wished, f) || slices.Contains(device, f) {
			t.Errorf("%d is asked for", f)
		}
	}
}
