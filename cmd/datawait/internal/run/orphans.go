package run

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unclaimed is how long a dead child may stay unwaited before it counts as an adopted orphan. Children that datawait
// starts itself are waited for within milliseconds, by whoever started them.
const unclaimed = time.Second

// adoptOrphans makes orphans of the job children of datawait instead of init's (prctl(2), PR_SET_CHILD_SUBREAPER).
// As PID 1 of a container datawait gets them anyway.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reaper makes one goroutine reap for the whole process, however many jobs it runs one after the other.
var reaper sync.Once

// reapOrphans waits for adopted children that died, so that none stays a zombie.
func reapOrphans() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	dead := map[int]time.Time{} // zombies, since when seen
	for {
		if len(dead) == 0 {
			<-died
		}
		time.Sleep(unclaimed / 4)
		dead = reapOnce(dead, time.Now())
	}
}

// reapOnce reaps the zombies that were already there long enough and returns the ones to look at again.
func reapOnce(dead map[int]time.Time, now time.Time) map[int]time.Time {
	still := map[int]time.Time{}
	for _, p := range processes() {
		if p.parent != os.Getpid() || p.state != 'Z' {
			continue
		}
		since, seen := dead[p.pid]
		switch {
		case !seen:
			still[p.pid] = now
		case now.Sub(since) < unclaimed:
			still[p.pid] = since
		default:
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
	return still
}
