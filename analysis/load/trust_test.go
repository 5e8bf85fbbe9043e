package load

import "testing"

// trialWindow is a window of so many ms, with SM activity and GPU-util.
func trialWindow(begin, length int64, sm, resident float32) Window {
	return Window{Begin: begin * 1e6, End: (begin + length) * 1e6, SM: sm, Resident: resident, Tensor: nan, DRAM: nan, Copy: nan, FP32: nan}
}

// util is GPU-util as a driver tells it: the mean of the last second of work, in windows of 100 ms.
func util(busy []bool, i int) float32 {
	sum := 0
	for k := max(0, i-9); k <= i; k++ {
		if busy[k] {
			sum++
		}
	}
	return float32(sum) / float32(min(10, i+1))
}

// GPU-util lags: a pause in work, however long and often, is no contradiction. Counters that stopped, and ones that are counted half of the
// time only, are; also where the source that wrote the window could look at no other.
func TestGPUUtilThatLagsIsNoContradiction(t *testing.T) {
	for name, c := range map[string]struct {
		busy  func(i int) bool // whether the device works in a window
		sm    func(i int) bool // whether the counter shows it
		wrong bool
	}{
		"a pause of five seconds":               {busy: func(i int) bool { return i < 100 || i >= 150 }},
		"a second in two":                       {busy: func(i int) bool { return i%20 < 10 }},
		"a tenth of each second":                {busy: func(i int) bool { return i%10 != 3 }},
		"the end of work":                       {busy: func(i int) bool { return i < 100 }},
		"stopped for ever":                      {busy: func(int) bool { return true }, sm: func(i int) bool { return i < 100 }, wrong: true},
		"never counted":                         {busy: func(int) bool { return true }, sm: func(int) bool { return false }, wrong: true},
		"four tenths of a second":               {busy: func(i int) bool { return i%10 < 4 }},
		"two seconds in five":                   {busy: func(i int) bool { return i%50 < 20 }},
		"stopped, and at work for eight tenths": {busy: func(i int) bool { return i%10 < 8 }, sm: func(int) bool { return false }, wrong: true},
		"counted half the time":                 {busy: func(int) bool { return true }, sm: func(i int) bool { return i%2 == 0 }, wrong: true},
	} {
		if c.sm == nil {
			c.sm = c.busy
		}
		busy := make([]bool, 200)
		for i := range busy {
			busy[i] = c.busy(i)
		}
		for _, flagged := range []bool{false, true} {
			var windows []Window
			zeros := 0
			for i := range busy {
				sm := float32(0)
				if c.sm(i) {
					sm = 0.8
				} else {
					zeros++
				}
				w := trialWindow(int64(100*i), 100, sm, util(busy, i))
				w.Untrusted = flagged && sm == 0 && w.Resident >= 0.9
				w.check()
				windows = append(windows, w)
			}
			stopped(windows)
			halted(windows)
			untrusted := 0
			for _, w := range windows {
				if w.Untrusted {
					untrusted++
				}
			}
			if c.wrong && untrusted < zeros || !c.wrong && untrusted > 0 {
				t.Errorf("%s: %d of %d windows without activity are untrusted", name, untrusted, zeros)
			}
		}
	}
}

// A window of a second has room for no lag; one that cannot be for itself stays untrusted whatever is beside it.
func TestLongWindowsAndImpossibleOnes(t *testing.T) {
	windows := []Window{trialWindow(0, 1000, 0.8, 1), trialWindow(1000, 1000, 0, 1), trialWindow(2000, 100, 1.3, 1), trialWindow(2100, 100, 0, 0.5)}
	windows[3].Tensor = 0.4
	for i := range windows {
		windows[i].check()
	}
	stopped(windows)
	for i, want := range []bool{false, true, true, true} {
		if windows[i].Untrusted != want {
			t.Errorf("window %d: untrusted %v", i, windows[i].Untrusted)
		}
	}
}
