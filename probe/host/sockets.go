package host

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// socketsPerPoll is how many sockets may be listed each second; on a machine with more, polls come less often.
const socketsPerPoll = 20000

// unseenPolls is after how many polls a connection that is no longer listed is forgotten, where the kernel does not tell
// when it closes. Forgetting it too soon would count it a second time if it was merely skipped by a list.
const unseenPolls = 10

// connection is one socket that was seen.
type connection struct {
	inode    uint32
	remote   Endpoint
	received uint64 // at its last sight
	pending  uint64 // bytes of this poll that still need an owner
	owner    int    // pid; 0 = nobody in the job, as far as is known
	searched bool   // no process of the job held it when looked for
	sighted  int    // poll that saw or heard of it last
	listed   int    // poll that found it open last
}

// inflow is what one process received.
type inflow struct {
	start    uint64
	bytes    float64
	readable bool // its descriptors could be listed
}

// socketProbe gives received bytes to the processes that hold the sockets. It is grade B evidence: the kernel's own count of
// each connection, but one that comes and goes between two polls is given by estimate (see strays), and one that several
// processes share, as a forked worker shares its parent's, is given to the one that started first.
type socketProbe struct {
	open    func() (SocketTable, error)
	table   SocketTable            // nil until it could be opened
	conns   map[uint64]*connection // by cookie
	procs   map[int]*inflow        // by pid
	polls   int
	at      uint64 // ns, of the last poll that succeeded
	rest    int    // polls to leave out
	ended   []uint64
	strays  strays
	holders holderSearch
}

func newSocketProbe(open func() (SocketTable, error)) socketProbe {
	return socketProbe{open: open, conns: map[uint64]*connection{}, procs: map[int]*inflow{}}
}

// sampleSockets brings the bytes of each process up to date; PROCESS records carry them.
func (h *Host) sampleSockets() error {
	s := &h.sockets
	if err := s.ready(); err != nil {
		return err
	}
	if err := h.tree.scan(); err != nil {
		return err
	}
	if s.rest > 0 {
		s.rest--
		return nil
	}
	if err := h.sameNetwork(); err != nil {
		return err
	}
	at := h.now()
	if err := s.table.Poll(s.see); err != nil {
		return err
	}
	s.polls++
	s.findOwners(h)
	s.forget(h.tree)
	s.at, s.rest = at, len(s.conns)/socketsPerPoll
	h.tellStrays()
	return nil
}

// ready opens the table where it is not open.
func (s *socketProbe) ready() (err error) {
	if s.table == nil {
		s.table, err = s.open()
	}
	return err
}

func (s *socketProbe) close() error {
	if c, ok := s.table.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// see takes one socket of a poll. Bytes a connection had received before the first poll are left aside: they are older
// than the recording.
func (s *socketProbe) see(k Socket) {
	if k.Received == unknown { // no tcp_info: the remains of a closed connection, or a kernel before 4.1
		return
	}
	c := s.conns[k.Cookie]
	switch {
	case c == nil && k.Closed:
		s.strays.waiting = append(s.strays.waiting, k)
		return
	case c == nil:
		c = &connection{remote: k.Remote}
		if s.polls == 0 {
			c.received = k.Received
		}
		s.conns[k.Cookie] = c
	}
	if d := growth(k.Received, c.received); d != unknown {
		c.pending += d
	}
	c.received, c.sighted = k.Received, s.polls+1
	if k.Inode != 0 && c.inode == 0 { // 0: not accepted yet, or let go
		c.inode, c.searched = k.Inode, false
	}
	if k.Closed {
		s.ended = append(s.ended, k.Cookie)
	} else {
		c.listed = c.sighted
	}
}

// findOwners books this poll's bytes, after looking for the owners of connections nobody looked for yet. A process that is
// new to the job may hold any of the others, so all of them are looked for again.
func (s *socketProbe) findOwners(h *Host) {
	met := s.meet(h.tree)
	s.holders.reset()
	for _, c := range s.conns {
		if c.owner == 0 && c.inode != 0 && (met || !c.searched) {
			s.holders.want(c.inode)
		}
	}
	if met || s.holders.wants() {
		s.holders.search(h.files, h.tree, func(m *member, err error) {
			s.procs[m.pid].readable = err == nil
			if err != nil && !gone(err) {
				h.because("received bytes", unreadable("list of open files", err))
			}
		})
	}
	for _, c := range s.conns {
		s.book(c)
	}
	s.strays.divide(s.procs)
	s.strays.forget(s.procs, s.polls)
}

// book gives a connection's bytes to its owner. Bytes without one are dropped: kept, they would turn up in a later window.
func (s *socketProbe) book(c *connection) {
	if c.owner == 0 && c.inode != 0 {
		c.owner, c.searched = s.holders.of(c.inode), true
	}
	if p := s.procs[c.owner]; p != nil {
		p.bytes += float64(c.pending)
		if c.listed == s.polls {
			s.strays.sight(c.remote, c.owner, s.polls)
		}
	}
	c.pending = 0
}

// meet makes an account for every process of the job, and reports whether there was a new one.
func (s *socketProbe) meet(t *tree) (met bool) {
	for _, pid := range t.order {
		m := t.members[pid]
		if p := s.procs[pid]; p == nil || p.start != m.start {
			s.procs[pid] = &inflow{start: m.start}
			met = true
		}
	}
	for pid := range s.procs {
		if t.members[pid] == nil {
			delete(s.procs, pid)
		}
	}
	return met
}

// forget drops connections that are over.
func (s *socketProbe) forget(t *tree) {
	for _, cookie := range s.ended {
		delete(s.conns, cookie)
	}
	s.ended = s.ended[:0]
	for cookie, c := range s.conns {
		if s.polls-c.sighted >= unseenPolls {
			delete(s.conns, cookie)
		} else if c.owner != 0 && t.members[c.owner] == nil {
			c.owner, c.searched = 0, false // it may live on in a child
		}
	}
}

// received returns what a process received over TCP so far and when that was counted; unknown if it was not.
func (s *socketProbe) received(m *member) (bytes, at uint64) {
	p := s.procs[m.pid]
	if p == nil || p.start != m.start || !p.readable {
		return unknown, s.at
	}
	return uint64(p.bytes), s.at
}

// sameNetwork fails if the job's sockets are in a network namespace of their own, where they cannot be seen from here.
func (h *Host) sameNetwork() error {
	head := h.tree.head()
	if head == nil {
		return nil
	}
	theirs, err1 := readLink(h.files.ofProcess(head.pid, "ns/net"))
	ours, err2 := readLink(h.files.Proc + "/self/ns/net")
	if err1 == nil && err2 == nil && theirs != ours {
		return fmt.Errorf("%w: the job is in another network namespace; run datawait inside it", errors.ErrUnsupported)
	}
	return nil
}

// tellStrays says in the host note what the numbers per process lack.
func (h *Host) tellStrays() {
	s := &h.sockets
	if news := s.strays.news(); news != "" {
		h.because("received bytes of short connections", news)
	}
	if s.table.Overrun() {
		h.because("closed connections", "not all of them were heard of: what each received in its last second is missing")
	}
}

func readLink(path string) (string, error) {
	var b [256]byte
	n, err := unix.Readlink(path, b[:])
	if err != nil {
		return "", fmt.Errorf("reading the link %s: %w", path, err)
	}
	return string(b[:n]), nil
}
