package emulated

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/datawait/datawait/probe/recording"
)

// locks holds the keys of the files on which somebody holds a lock; nil if the kernel does not tell.
//
// The process that owns an emulated device holds an exclusive flock on its log, as a real one holds a CUDA context. The lock
// is looked up and never tried: a try would take it for a moment, in which a starting process could not.
type locks map[string]bool

// readLocks reads /proc/locks (proc_locks(5)): "1: FLOCK  ADVISORY  WRITE 4711 00:1b:1234 0 EOF", the sixth field being
// device and inode. Lines of waiters have "->" as their second field.
func readLocks(path string) locks {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	held := locks{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 6 && fields[1] == "FLOCK" && fields[3] == "WRITE" {
			held[fields[5]] = true
		}
	}
	if lines.Err() != nil {
		return nil
	}
	return held
}

// lockKey returns the file's key in the table, "" if the file system hides it.
func lockKey(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	// st_dev as the kernel prints s_dev: major in 12 bits, minor in 20 (makedev(3)).
	major := stat.Dev>>8&0xfff | stat.Dev>>32&^0xfff
	minor := stat.Dev&0xff | stat.Dev>>12&^0xff
	return fmt.Sprintf("%02x:%02x:%d", major, minor, stat.Ino)
}

// held returns the flags that say whether a process holds the device. Work shows that one does. Its absence shows nothing, and
// nor does a table in which the lock of this log was never seen: some file systems report another device number there.
func (d *device) held(table func() locks, worked bool) uint8 {
	if worked && d.lockSeen { // the table would add nothing
		return recording.GPUHeldKnown | recording.GPUHeld
	}
	l := table()
	locked := l[d.lockKey]
	d.lockSeen = d.lockSeen || locked
	switch {
	case worked || locked:
		return recording.GPUHeldKnown | recording.GPUHeld
	case l != nil && d.lockSeen:
		return recording.GPUHeldKnown
	}
	return 0
}
