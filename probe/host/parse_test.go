package host

import (
	"strings"
	"testing"
)

func netDevWith(lo, eth string) string {
	return strings.NewReplacer("%lo", lo, "%eth", eth).Replace(netDev)
}

func TestProcessStat(t *testing.T) {
	s, err := parseProcessStat([]byte("7 (a) b (c) R 3 4 5 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 9 0 1234 5678 90 18446744073709551615\n"))
	if err != nil {
		t.Fatal(err)
	}
	if string(s.comm) != "a) b (c" || s.state != 'R' || s.ppid != 3 || s.group != 4 || s.user != 50 || s.system != 60 ||
		s.reaped != 15 || s.threads != 9 || s.start != 1234 || s.rss != 90 {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{"", "7", "7 (a", ")7(", "7 (a) R 3", "7 (a) R x 4 5", "7 (a) R 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0"} {
		if s, err := parseProcessStat([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, s)
		}
	}
}

func TestRunQueue(t *testing.T) {
	for text, want := range map[string]uint64{"122157 69500 1\n": 69500, "0 0 0\n": unknown, "": unknown, "5 6": unknown, "1 0 1": 0} {
		if got := parseRunQueue([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestRunnable(t *testing.T) {
	for text, want := range map[string]uint64{"0.20 0.18 0.12 3/80 11206\n": 3, "0.20": unknown, "0 0 0 3 7": unknown, "": unknown} {
		if got := parseRunnable([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestThrottlingUnits(t *testing.T) {
	v1 := parseThrottling([]byte("nr_periods 3\nnr_throttled 2\nthrottled_time 7000\n"))
	v2 := parseThrottling([]byte("usage_usec 1\nnr_periods 3\nnr_throttled 2\nthrottled_usec 7\n"))
	if want := (throttling{3, 2, 7000}); v1 != want || v2 != want {
		t.Errorf("v1 %+v, v2 %+v, want %+v", v1, v2, want)
	}
	if none := parseThrottling([]byte("usage_usec 1\n")); none != (throttling{unknown, unknown, unknown}) {
		t.Errorf("%+v, want unknown", none)
	}
}

func TestDecimal(t *testing.T) {
	if v, ok := decimal([]byte("18446744073709551615")); !ok || v != 1<<64-1 {
		t.Errorf("%d %v", v, ok)
	}
	for _, bad := range []string{"", "-1", "1x", "18446744073709551616", "99999999999999999999", "+1"} {
		if v, ok := decimal([]byte(bad)); ok {
			t.Errorf("%q was read as %d", bad, v)
		}
	}
}

func TestCountersThatFallAreUnknown(t *testing.T) {
	if growth(5, 6) != unknown || growth(unknown, 1) != unknown || growth(1, unknown) != unknown || growth(7, 5) != 2 {
		t.Error("growth")
	}
	if growth32(3, 4294967295) != 4 || growth32(unknown, 1) != unknown {
		t.Error("growth32")
	}
	if !isNaN(perSecond(unknown, 1)) || !isNaN(perSecond(1, 0)) || !isNaN(share(1, 0)) || share(3, 2) != 1 || !isNaN(cores(unknown, 5)) {
		t.Error("rates")
	}
}

func TestMembership(t *testing.T) {
	m := parseMembership([]byte("12:cpu,cpuacct:/a:b\n1:name=systemd:/s\n0::/u\nbad\n5:x\n6:y:relative\n"))
	if m.v2 != "/u" || m.v1["cpu"] != "/a:b" || m.v1["cpuacct"] != "/a:b" || m.v1["name=systemd"] != "/s" || len(m.v1) != 3 {
		t.Errorf("%+v", m)
	}
}

func TestMountPointsWithBlanks(t *testing.T) {
	m := parseCgroupMounts([]byte(`31 23 0:26 /a\040b /sys/fs/cgroup\011x rw shared:1 master:2 - cgroup2 none rw` + "\n"))
	if len(m) != 1 || m[0].root != "/a b" || m[0].point != "/sys/fs/cgroup\tx" || m[0].version != 2 {
		t.Errorf("%+v", m)
	}
}
