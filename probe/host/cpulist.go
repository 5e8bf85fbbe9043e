package host

import (
	"bytes"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers a CPU list may name; the largest kernels are built for 8192 (NR_CPUS).
const maxCPU = 1 << 16

// cpuSet is a set of CPU numbers, bit i of the slice for CPU i. nil is the empty set; a set that could not be read is told
// apart by the caller.
type cpuSet []uint64

// parseCPUList reads the kernel's list format, "0-3,8": Cpus_allowed_list, cpuset.cpus.effective,
// /sys/devices/system/cpu/online (Documentation/admin-guide/cputopology.rst).
func parseCPUList(b []byte) (cpuSet, error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return nil, nil
	}
	var set cpuSet
	for part := range bytes.SplitSeq(b, []byte{','}) {
		first, last, isRange := bytes.Cut(part, []byte{'-'})
		lo, ok := decimal(first)
		hi := lo
		if ok && isRange {
			hi, ok = decimal(last)
		}
		if !ok || hi < lo || hi >= maxCPU {
			return nil, fmt.Errorf("parsing the CPU list %.40q: %w", b, errFormat)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			set = set.with(int(cpu))
		}
	}
	return set, nil
}

func (s cpuSet) with(cpu int) cpuSet {
	for cpu/64 >= len(s) {
		s = append(s, 0)
	}
	s[cpu/64] |= 1 << (cpu % 64)
	return s
}

func (s cpuSet) has(cpu int) bool { return cpu/64 < len(s) && s[cpu/64]>>(cpu%64)&1 == 1 }

func (s cpuSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s cpuSet) union(t cpuSet) cpuSet {
	if len(s) < len(t) {
		s, t = t, s
	}
	out := append(cpuSet(nil), s...)
	for i, word := range t {
		out[i] |= word
	}
	return out
}

func (s cpuSet) intersect(t cpuSet) cpuSet {
	out := append(cpuSet(nil), s[:min(len(s), len(t))]...)
	for i := range out {
		out[i] &= t[i]
	}
	return out
}

// String returns the kernel's list format.
func (s cpuSet) String() string {
	var text strings.Builder
	for cpu := 0; cpu < 64*len(s); cpu++ {
		if !s.has(cpu) {
			continue
		}
		first := cpu
		for s.has(cpu + 1) {
			cpu++
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(first))
		if cpu > first {
			text.WriteString("-" + strconv.Itoa(cpu))
		}
	}
	return text.String()
}
