package clock

import (
	"testing"
	"time"
)

func TestMonoAdvances(t *testing.T) {
	a := Mono()
	time.Sleep(2 * time.Millisecond)
	if b := Mono(); b < a+2e6 {
		t.Errorf("slept 2 ms, the clock moved by %d ns", b-a)
	}
}

func TestPairIsTheWallClock(t *testing.T) {
	before := time.Now().UnixNano()
	m0, r0 := Pair()
	after := time.Now().UnixNano()
	if int64(r0) < before || int64(r0) > after {
		t.Errorf("realtime %d is not within [%d, %d]", r0, before, after)
	}
	time.Sleep(2 * time.Millisecond)
	m1, r1 := Pair()
	if drift := int64(r1-r0) - int64(m1-m0); drift > 1e6 || drift < -1e6 {
		t.Errorf("over the same span the clocks disagree by %d ns", drift)
	}
}

func TestCPUClocksCountWork(t *testing.T) {
	p0, t0 := ProcessCPU(), ThreadCPU()
	for Mono(); ProcessCPU() < p0+3e6; {
	}
	if ThreadCPU() == t0 {
		t.Error("the thread worked for 3 ms and its CPU clock stands still")
	}
}

func TestBootID(t *testing.T) {
	id, err := BootID()
	if err != nil || len(id) != 36 {
		t.Errorf("boot id %q: %v", id, err)
	}
}
