package host

import (
	"encoding/binary"
	"path"
	"strings"
	"testing"
)

// FuzzFiles feeds anything to every parser of a text file: none may panic, and what they return must keep its promises.
func FuzzFiles(f *testing.F) {
	for _, seed := range []string{
		"cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0\ncpu0 1 2 3\nprocs_running 2\n",
		"0.20 0.18 0.12 1/80 11206\n",
		"MemTotal: 4096 kB\nMemAvailable: 18446744073709551615 kB\n",
		"7 (a) b (c) R 3 4 5 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 9 0 1234 5678 90 18446744073709551615\n",
		"Cpus_allowed_list:\t0-3,8\nvoluntary_ctxt_switches:\t7\n",
		"rchar: 5\nread_bytes: 7\n", "122157 69500 1\n", "0 0 0",
		"12:cpu,cpuacct:/a:b\n0::/../u\n",
		"31 23 0:26 /a\\040b /sys/fs/cgroup rw shared:1 - cgroup2 none rw\n33 31 0:30 / /x rw - cgroup c rw,cpu\n",
		"400000 100000\n", "max 100000\n", "-1\n", "9223372036854771712\n",
		"nr_periods 3\nnr_throttled 2\nthrottled_time 7000\n",
		"some avg10=0.22 avg60=0.17 avg300=0.64 total=8761\nfull total=1\n",
		" 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11\n", netDev,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseMachineTimes(b); err == nil {
			_, _ = m.busy(), m.measured()
		}
		_, _, _ = parseRunnable(b), parseMemory(b), parseRunQueue(b)
		_, _, _ = parseReadBytes(b), parseProcessStatus(b), parseThrottling(b)
		if s, err := parseProcessStat(b); err == nil && (s.ppid < 0 || s.start == unknown) {
			t.Errorf("a process without identity: %+v", s)
		}
		if q, ok, err := parseCPUMax(b); err == nil && ok && !(q.cores() >= 0) {
			t.Errorf("quota %+v", q)
		}
		if q, ok, err := parseCFSQuota(b, b); err == nil && ok && !(q.cores() >= 0) {
			t.Errorf("quota %+v", q)
		}
		if limit, ok, err := parseMemoryLimit(b); err == nil && ok && limit >= 1<<62 {
			t.Errorf("limit %d", limit)
		}
		if s, err := parseStall(b); err == nil && s.some == unknown {
			t.Error("a stall without a total")
		}
		parseDisks(b, func(name []byte, d disk) { _ = d.untouched() })
		parseInterfaces(b, func(name []byte, received uint64) {
			if len(name) == 0 || received == unknown {
				t.Errorf("interface %q received %d", name, received)
			}
		})
		_, _ = parseSocketLink(b)
		fuzzGroups(t, b)
	})
}

// fuzzGroups checks that no group, mount or file content leads outside the mount point.
func fuzzGroups(t *testing.T, b []byte) {
	members := parseMembership(b)
	for _, m := range parseCgroupMounts(b) {
		for _, group := range append([]string{members.v2, string(b)}, members.v1["cpu"]) {
			folders, ok := m.folders(group)
			if !ok {
				continue
			}
			for _, folder := range folders {
				if clean := path.Clean(folder); clean != path.Clean(m.point) && !strings.HasPrefix(clean, strings.TrimSuffix(path.Clean(m.point), "/")+"/") {
					t.Errorf("group %q of mount %+v leads to %q", group, m, folder)
				}
			}
		}
	}
}

func FuzzCPUList(f *testing.F) {
	for _, seed := range []string{"0-3,8", "", "65535", "3-1", "0-1,1-2\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		set, err := parseCPUList([]byte(list))
		if err != nil {
			return
		}
		again, err := parseCPUList([]byte(set.String()))
		if err != nil || again.String() != set.String() || again.count() != set.count() {
			t.Errorf("%q was read as %v, and that as %v (%v)", list, set, again, err)
		}
		if both := set.union(again); both.count() != set.count() || set.intersect(again).count() != set.count() {
			t.Errorf("%q: joined with itself %v", list, both)
		}
	})
}

func FuzzSockets(f *testing.F) {
	message := make([]byte, headerBytes+messageBytes+4+receivedAt+8)
	e := binary.NativeEndian
	e.PutUint32(message, uint32(len(message)))
	e.PutUint16(message[4:], byFamily)
	e.PutUint64(message[headerBytes+cookieAt:], 42)
	e.PutUint32(message[headerBytes+inodeAt:], 501)
	e.PutUint16(message[headerBytes+messageBytes:], 4+receivedAt+8)
	e.PutUint16(message[headerBytes+messageBytes+2:], attrInfo)
	e.PutUint64(message[headerBytes+messageBytes+4+receivedAt:], 5005800)
	done := make([]byte, headerBytes+4)
	e.PutUint32(done, uint32(len(done)))
	e.PutUint16(done[4:], messageDone)
	f.Add(append(append([]byte(nil), message...), done...))
	f.Add(done)
	f.Add(message[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_, _ = parseSockets(b, false, func(Socket) { n++ })
		if n*(headerBytes+messageBytes) > len(b) {
			t.Errorf("%d sockets in %d bytes", n, len(b))
		}
	})
	seen := 0
	finished, err := parseSockets(append(append([]byte(nil), message...), done...), false, func(s Socket) {
		seen++
		if s.Cookie != 42 || s.Inode != 501 || s.Received != 5005800 || s.Closed {
			f.Errorf("%+v", s)
		}
	})
	if !finished || err != nil || seen != 1 {
		f.Errorf("finished %v, %v, %d sockets", finished, err, seen)
	}
}
