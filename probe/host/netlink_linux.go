package host

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tcpSockets is the kernel's socket diagnostics (sock_diag(7)). It needs no privilege.
type tcpSockets struct {
	dump    int
	closed  int // hears of sockets that are destroyed; -1 where the kernel does not tell
	seq     uint32
	apart   bool // the kernel does not list both address families in one go
	overrun bool
	buf     []byte
}

// destroyGroups are the multicast groups of destroyed TCP sockets, IPv4 and IPv6 (linux/sock_diag.h, SKNLGRP_INET_TCP_DESTROY
// and SKNLGRP_INET6_TCP_DESTROY; since Linux 4.2). Anyone may listen (net/core/sock_diag.c, NL_CFG_F_NONROOT_RECV).
var destroyGroups = []int{1, 3}

// closedBacklog is how many bytes of news about closed sockets may wait, some thousand sockets. The kernel cuts it to
// net.core.rmem_max.
const closedBacklog = 4 << 20

// OpenTCP returns the TCP sockets of the caller's network namespace. The error is errors.ErrUnsupported where the kernel or
// the sandbox has no socket diagnostics or does not allow them.
func OpenTCP() (SocketTable, error) {
	dump, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("%w: this system offers no socket diagnostics: %w", errors.ErrUnsupported, err)
	}
	patience := unix.Timeval{Sec: 1}
	if err := unix.SetsockoptTimeval(dump, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		unix.Close(dump)
		return nil, fmt.Errorf("opening socket diagnostics: %w", err)
	}
	t := &tcpSockets{dump: dump, closed: listenClosed(), buf: make([]byte, 64<<10)}
	nobody := func(Socket) {}
	t.apart = t.list(nobody) != nil
	if t.apart {
		if err := t.list(nobody); err != nil {
			t.Close()
			return nil, fmt.Errorf("%w: this system offers no socket diagnostics: %w", errors.ErrUnsupported, err)
		}
	}
	return t, nil
}

// listenClosed returns a socket that hears of destroyed sockets, -1 if there is none to be had: then the bytes of a
// connection's last second are lost, and no more.
func listenClosed() int {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return -1
	}
	// A socket that is not bound has port 0, which is the sender's own: the kernel leaves it out of its broadcasts
	// (net/netlink/af_netlink.c, do_one_broadcast).
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return -1
	}
	for _, group := range destroyGroups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
			unix.Close(fd)
			return -1
		}
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, closedBacklog) // a smaller one is cut short sooner, and says so
	return fd
}

// Poll visits connected sockets first and closed ones after: a socket that closes while Poll runs is then already known.
func (t *tcpSockets) Poll(visit func(Socket)) error {
	if err := t.list(visit); err != nil {
		return err
	}
	return t.drainClosed(visit)
}

// list visits the connected sockets of both address families.
func (t *tcpSockets) list(visit func(Socket)) error {
	if !t.apart {
		return t.poll(olderRequest, visit)
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		of := func(seq uint32) []byte { return dumpRequest(family, seq) }
		if err := t.poll(of, visit); err != nil && !(family == unix.AF_INET6 && noFamily(err)) {
			return err
		}
	}
	return nil
}

// noFamily reports whether an error means that the kernel has no such address family.
func noFamily(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EINVAL)
}

func (t *tcpSockets) poll(request func(seq uint32) []byte, visit func(Socket)) error {
	t.seq++
	if err := unix.Sendto(t.dump, request(t.seq), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("asking for socket diagnostics: %w", err)
	}
	for {
		n, err := t.receive(t.dump)
		if err != nil {
			return fmt.Errorf("receiving socket diagnostics: %w", err)
		}
		if done, err := parseSockets(t.buf[:n], false, visit); done || err != nil {
			return err
		}
	}
}

func (t *tcpSockets) drainClosed(visit func(Socket)) error {
	for t.closed >= 0 {
		n, err := t.receive(t.closed)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.ENOBUFS): // the backlog was full; what is in it can still be read
			t.overrun = true
		case err != nil:
			return fmt.Errorf("hearing of closed sockets: %w", err)
		default:
			if _, err := parseSockets(t.buf[:n], true, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tcpSockets) receive(fd int) (int, error) {
	for {
		n, _, err := unix.Recvfrom(fd, t.buf, 0)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// Overrun reports whether closed sockets went unheard: always, where the kernel does not tell.
func (t *tcpSockets) Overrun() bool {
	was := t.overrun || t.closed < 0
	t.overrun = false
	return was
}

// Close gives the kernel's sockets back.
func (t *tcpSockets) Close() error {
	if t.closed >= 0 {
		unix.Close(t.closed)
	}
	return unix.Close(t.dump)
}
