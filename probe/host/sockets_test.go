package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// tableOf is a socket table that gives one prepared answer at each poll.
type tableOf struct {
	polls   [][]Socket
	err     error
	overrun bool
}

func (t *tableOf) Poll(visit func(Socket)) error {
	if t.err != nil {
		return t.err
	}
	if len(t.polls) > 0 {
		for _, s := range t.polls[0] {
			visit(s)
		}
		t.polls = t.polls[1:]
	}
	return nil
}

func (t *tableOf) Overrun() bool { return t.overrun }

// twoWorkers is a main process 10 with workers 11 and 12.
func twoWorkers(t *testing.T, table SocketTable) *fixture {
	f := newFixture(t, table)
	f.process(proc{pid: 10, ppid: 1, start: 5, comm: "python"})
	f.process(proc{pid: 11, ppid: 10, start: 6, comm: "pt_data_worker"})
	f.process(proc{pid: 12, ppid: 10, start: 7, comm: "pt_data_worker"})
	f.job = []Known{{PID: 10, Role: recording.RoleMain}}
	return f
}

func (f *fixture) holds(pid, fd int, inode string) {
	f.link(fmt.Sprintf("proc/%d/fd/%d", pid, fd), "socket:["+inode+"]")
}

// received returns bytes/s of each process in the last sample of processes.
func (f *fixture) received() map[int]float32 {
	f.t.Helper()
	f.run("sockets", "processes")
	got := map[int]float32{}
	for _, r := range f.records(recording.KindProcess) {
		if p := r.Process(); p.End == f.at {
			got[int(p.PID)] = p.Received
		}
	}
	return got
}

func TestReceivedBytesGoToTheHolder(t *testing.T) {
	table := &tableOf{polls: [][]Socket{
		{{Cookie: 1, Inode: 501, Received: 1000000}, {Cookie: 9, Inode: 999, Received: 5}},
		{{Cookie: 1, Inode: 501, Received: 1000300}, {Cookie: 2, Inode: 502, Received: 40}, {Cookie: 9, Inode: 999, Received: 777}},
		// 1 closes after 7 more bytes; 3 comes and goes; 2 has been let go by its process and drains.
		{{Cookie: 2, Inode: 0, Received: 50}, {Cookie: 1, Received: 1000307, Closed: true}, {Cookie: 3, Remote: Endpoint{Port: 80}, Received: 3000000, Closed: true}},
		{{Cookie: 2, Received: unknown}},
	}}
	f := twoWorkers(t, table)
	f.holds(11, 4, "501")
	f.received()
	f.holds(12, 4, "502")
	if got := f.received(); got[11] != 300 || got[12] != 40 || got[10] != 0 {
		t.Errorf("received %v, want 300 by 11 and 40 by 12: the bytes before the first poll are older", got)
	}
	if got := f.received(); got[11] != 7 || got[12] != 10 {
		t.Errorf("received %v, want the last 7 of the closed one and 10 of the one that drains", got)
	}
	if why := f.why("received bytes of short connections"); !contains(why, "3e+06 could be given to nobody") {
		t.Errorf("nothing said of the connection nobody could be given: %q", why)
	}
	if got := f.received(); got[11] != 0 || got[12] != 0 {
		t.Errorf("received %v, want a known 0", got)
	}
}

// A connection a worker inherited belongs to whoever made it.
func TestSharedConnectionGoesToTheOldest(t *testing.T) {
	table := &tableOf{polls: [][]Socket{{{Cookie: 1, Inode: 501}}, {{Cookie: 1, Inode: 501, Received: 300}}}}
	f := twoWorkers(t, table)
	for _, pid := range []int{10, 11, 12} {
		f.holds(pid, 4, "501")
	}
	f.received()
	if got := f.received(); got[10] != 300 || got[11] != 0 || got[12] != 0 {
		t.Errorf("received %v", got)
	}
}

// A worker that starts later opens its own connections, and one that was nobody's may turn out to be its.
func TestNewWorker(t *testing.T) {
	table := &tableOf{polls: [][]Socket{
		{{Cookie: 1, Inode: 501, Received: 10}},
		{{Cookie: 1, Inode: 501, Received: 900}},
		{{Cookie: 1, Inode: 501, Received: 1000}, {Cookie: 2, Inode: 502, Received: 30}},
		{{Cookie: 1, Inode: 501, Received: 1005}, {Cookie: 2, Inode: 502, Received: 31}},
	}}
	f := twoWorkers(t, table)
	f.received()
	f.received()
	f.process(proc{pid: 13, ppid: 10, start: 9, comm: "pt_data_worker"})
	f.holds(13, 4, "501")
	f.holds(13, 5, "502")
	f.received()
	if got := f.received(); got[13] != 6 {
		t.Errorf("received %v, want 6 by 13", got)
	}
	if total := f.host.sockets.procs[13].bytes; total != 136.0 {
		t.Errorf("13 received %.0f in all, want 136: bytes of windows it had no part in do not count", total)
	}
}

func TestSocketsNotToBeHad(t *testing.T) {
	f := twoWorkers(t, nil)
	if err := f.try("sockets"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("no table: %v", err)
	}
	f.run("processes")
	f.run("processes")
	if got := f.last(recording.KindProcess).Process(); !isNaN(got.Received) {
		t.Errorf("%+v, want received unknown", got)
	}

	f = twoWorkers(t, &tableOf{overrun: true})
	f.remove("proc/11/fd")
	f.received()
	if got := f.received(); !isNaN(got[11]) || got[12] != 0 {
		t.Errorf("received %v, want 11 unknown: its descriptors cannot be listed", got)
	}
	if f.why("closed connections") == "" {
		t.Error("nothing said of closed sockets that went unheard")
	}

	f = twoWorkers(t, &tableOf{})
	f.link("proc/10/ns/net", "net:[7]")
	f.link("proc/self/ns/net", "net:[8]")
	if err := f.try("sockets"); !errors.Is(err, errors.ErrUnsupported) || !contains(err.Error(), "namespace") {
		t.Errorf("another namespace: %v", err)
	}
}

// A poll that fails leaves its window unknown; the next one that works covers only what came after.
func TestFailedPollIsUnknown(t *testing.T) {
	table := &tableOf{polls: [][]Socket{{{Cookie: 1, Inode: 501}}, {{Cookie: 1, Inode: 501, Received: 400}}}}
	f := twoWorkers(t, table)
	f.holds(11, 4, "501")
	f.received()
	table.err = errors.New("the kernel is busy")
	f.at += 1e9
	if f.try("sockets") == nil {
		t.Fatal("the error was swallowed")
	}
	f.run("processes")
	if got := f.last(recording.KindProcess).Process(); !isNaN(got.Received) {
		t.Errorf("%+v, want received unknown", got)
	}
	table.err = nil
	if got := f.received(); !near(got[11], 400.0/3) {
		t.Errorf("received %v, want 400 bytes over the three seconds between polls", got)
	}
}

// A dataset that opens a connection for each sample is seen with some of them, and gets its share of the others.
func TestShortConnectionsAreDivided(t *testing.T) {
	server := Endpoint{Port: 443, Address: [16]byte{10, 1, 2, 3}}
	open := func(cookie uint64, inode uint32) Socket {
		return Socket{Cookie: cookie, Inode: inode, Remote: server, Received: 100}
	}
	closed := func(cookie uint64) Socket {
		return Socket{Cookie: cookie, Remote: server, Received: 1000, Closed: true}
	}
	table := &tableOf{polls: [][]Socket{
		{open(1, 501), open(2, 502), open(3, 503)},
		{closed(1), closed(2), closed(3), open(4, 504), open(5, 505), open(6, 506)},
		{closed(4), closed(5), closed(6), closed(7), closed(8), open(9, 507)},
		{closed(9), {Cookie: 10, Remote: Endpoint{Port: 80}, Received: 2000000, Closed: true}},
	}}
	f := twoWorkers(t, table)
	for i, pid := range []int{11, 11, 12, 11, 11, 12, 11} {
		f.holds(pid, 10+i, fmt.Sprint(501+i))
	}
	f.received()
	f.received()
	// 4 and 5 ended with 900 more bytes by 11, 6 by 12, 9 began with 100 by 11; 7 and 8 came and went: 11 was seen with
	// 5 connections of 7.
	if got := f.received(); got[11] != 1900+1428 || got[12] != 900+571 { // whole bytes
		t.Errorf("received %v, want 1900 + 2000 · 5/7 and 900 + 2000 · 2/7", got)
	}
	if got := f.received(); got[11] != 900 || got[12] != 0 {
		t.Errorf("received %v: a server the job was never seen with is somebody else's", got)
	}
	if why := f.why("received bytes of short connections"); !contains(why, "2e+06 could be given to nobody") {
		t.Errorf("told %q", why)
	}
}
