package host

import "bytes"

// disk is one line of /proc/diskstats (https://docs.kernel.org/admin-guide/iostats.html):
//
//	259 0 nvme0n1 reads merged sectors ms writes merged sectors ms inflight ms_busy ms_weighted …
//
// Counters start at 0 when the device appears. The kernel prints the milliseconds as 32-bit numbers that wrap
// (block/genhd.c, diskstats_show).
type disk struct {
	reads      uint64 // completed
	sectors    uint64 // read; of 512 bytes, whatever the device's own sector is
	readMillis uint64 // summed over reads; wraps at 32 bits
	writes     uint64 // completed
	busyMillis uint64 // with something in flight; wraps at 32 bits
}

const sectorBytes = 512

// parseDisks calls visit for each line. name is valid during the call.
func parseDisks(b []byte, visit func(name []byte, d disk)) {
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		name, rest := nextField(skipFields(line, 2))
		if len(name) == 0 {
			continue
		}
		var d disk
		d.reads, rest = nextNumber(rest)
		d.sectors, rest = nextNumber(skipFields(rest, 1))
		d.readMillis, rest = nextNumber(rest)
		d.writes, rest = nextNumber(rest)
		d.busyMillis, _ = nextNumber(skipFields(rest, 4))
		if d.reads == unknown { // kernels before 2.6.25 gave partitions four fields only
			continue
		}
		visit(name, d)
	}
}

// untouched reports whether nothing was ever read or written: empty loop devices and RAM disks.
func (d disk) untouched() bool { return d.reads == 0 && d.writes == 0 }

// memoryDisk reports whether a device's name says that it is no device but memory or a file: its reads are read again, or
// are no reads, and summing it with the disk below would count them twice.
func memoryDisk(name []byte) bool {
	for _, prefix := range []string{"loop", "ram", "zram"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return true
		}
	}
	return false
}
