package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"golang.org/x/sys/unix"
)

// quota is a bound on CPU time: budget microseconds in each period, over all CPUs.
type quota struct{ budget, period uint64 }

// cores returns the bound as a number of cores.
func (q quota) cores() float64 { return float64(q.budget) / float64(q.period) }

// parseCPUMax reads cpu.max of version 2: "400000 100000", or "max 100000" for no bound, which is ok = false
// (https://docs.kernel.org/admin-guide/cgroup-v2.html, "CPU Interface Files").
func parseCPUMax(b []byte) (q quota, ok bool, err error) {
	budget, rest := nextField(b)
	period, _ := nextNumber(rest)
	if period == 0 || period == unknown {
		return quota{}, false, fmt.Errorf("parsing cpu.max %.40q: %w", b, errFormat)
	}
	if string(budget) == "max" {
		return quota{}, false, nil
	}
	n, isNumber := decimal(budget)
	if !isNumber {
		return quota{}, false, fmt.Errorf("parsing cpu.max %.40q: %w", b, errFormat)
	}
	return quota{n, period}, true, nil
}

// parseCFSQuota reads cpu.cfs_quota_us and cpu.cfs_period_us of version 1; a quota of -1 is no bound
// (https://docs.kernel.org/scheduler/sched-bwc.html).
func parseCFSQuota(budget, period []byte) (q quota, ok bool, err error) {
	if string(bytes.TrimSpace(budget)) == "-1" {
		return quota{}, false, nil
	}
	b, ok1 := onlyNumber(budget)
	p, ok2 := onlyNumber(period)
	if !ok1 || !ok2 || p == 0 {
		return quota{}, false, fmt.Errorf("parsing cpu.cfs_quota_us %.20q and cpu.cfs_period_us %.20q: %w", budget, period, errFormat)
	}
	return quota{b, p}, true, nil
}

// throttling is cpu.stat's account of a quota, since the group was made.
type throttling struct {
	periods   uint64 // in which the group had something to run
	throttled uint64 // of those, in which it used up its budget
	nanos     uint64 // it was kept off the CPU, summed over CPUs: may exceed the time that passed
}

// parseThrottling reads cpu.stat. Version 1 counts throttled_time in nanoseconds, version 2 throttled_usec.
func parseThrottling(b []byte) throttling {
	t := throttling{value(b, "nr_periods"), value(b, "nr_throttled"), value(b, "throttled_time")}
	if micros := value(b, "throttled_usec"); micros < unknown/1000 {
		t.nanos = micros * 1000
	}
	return t
}

// parseMemoryLimit reads memory.max of version 2 or memory.limit_in_bytes of version 1. No bound is "max" there and the
// largest multiple of a page below 2^63 here (mm/memcontrol-v1.c, PAGE_COUNTER_MAX): ok = false.
func parseMemoryLimit(b []byte) (limit uint64, ok bool, err error) {
	b = bytes.TrimSpace(b)
	if string(b) == "max" {
		return 0, false, nil
	}
	limit, isNumber := decimal(b)
	if !isNumber {
		return 0, false, fmt.Errorf("parsing a memory limit %.40q: %w", b, errFormat)
	}
	return limit, limit < 1<<62, nil
}

// cpuQuota returns the least CPU quota of a chain, +Inf for none.
func (f *files) cpuQuota(c chain) (least float64, err error) {
	least = math.Inf(1)
	for _, folder := range c.folders {
		q, ok, err := f.quotaAt(c.version, folder)
		if err != nil {
			return 0, err
		}
		if ok {
			least = min(least, q.cores())
		}
	}
	return least, nil
}

// quotaAt reads the quota of one group. The outermost group and groups for which the controller is not enabled have no
// such file: no bound.
func (f *files) quotaAt(version int, folder string) (quota, bool, error) {
	if version == 2 {
		b, err := f.read(folder + "/cpu.max")
		if err != nil {
			return quota{}, false, ignoreMissing(err)
		}
		return parseCPUMax(b)
	}
	b, err := f.read(folder + "/cpu.cfs_quota_us")
	if err != nil {
		return quota{}, false, ignoreMissing(err)
	}
	budget := bytes.Clone(b)
	period, err := f.read(folder + "/cpu.cfs_period_us")
	if err != nil {
		return quota{}, false, err
	}
	return parseCFSQuota(budget, period)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// memoryLimit returns the least memory limit of a chain in bytes, unknown for none.
func (f *files) memoryLimit(c chain) (least uint64, err error) {
	name := "/memory.max"
	if c.version == 1 {
		name = "/memory.limit_in_bytes"
	}
	least = unknown
	for _, folder := range c.folders {
		b, err := f.read(folder + name)
		if err != nil {
			if err = ignoreMissing(err); err != nil {
				return unknown, err
			}
			continue
		}
		limit, ok, err := parseMemoryLimit(b)
		if err != nil {
			return unknown, err
		}
		if ok {
			least = min(least, limit)
		}
	}
	return least, nil
}

// cpus returns the CPUs a chain's innermost group may use. In version 2 a group without the controller uses what the next
// one above does. The effective list leaves out CPUs that are offline; version 1 has it since Linux 3.17, and before that
// the plain list.
func (f *files) cpus(c chain) (cpuSet, error) {
	names := []string{"/cpuset.cpus.effective"}
	if c.version == 1 {
		names = []string{"/cpuset.effective_cpus", "/cpuset.cpus"}
	}
	for _, folder := range c.folders {
		for _, name := range names {
			b, err := f.read(folder + name)
			if err != nil {
				if err = ignoreMissing(err); err != nil {
					return nil, err
				}
				continue
			}
			if set, err := parseCPUList(b); err != nil || set.count() > 0 {
				return set, err
			}
		}
	}
	return nil, fmt.Errorf("reading the cpuset of %s: %w", c.path, fs.ErrNotExist)
}

// throttledAt reads the account of every group of a chain that has a quota, by folder.
func (f *files) throttledAt(c chain) map[string]throttling {
	at := map[string]throttling{}
	for _, folder := range c.folders {
		if _, ok, err := f.quotaAt(c.version, folder); err != nil || !ok {
			continue
		}
		if b, err := f.read(folder + "/cpu.stat"); err == nil {
			at[folder] = parseThrottling(b)
		}
	}
	return at
}
