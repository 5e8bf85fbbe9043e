package host

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

// Socket is a TCP socket as the kernel's socket diagnostics show it.
type Socket struct {
	Cookie   uint64 // identity of the socket, never used again
	Inode    uint32 // what /proc/PID/fd shows as socket:[inode]; 0 for a socket no process holds
	Remote   Endpoint
	Received uint64 // bytes of payload received in order since the connection was made; unknown before Linux 4.1
	Closed   bool   // the socket is gone and this is its last count
}

// SocketTable lists the TCP sockets of one network namespace, IPv4, IPv6 and loopback alike.
type SocketTable interface {
	// Poll visits every connected socket and, where the kernel tells, those that were closed since the last Poll.
	Poll(visit func(Socket)) error
	// Overrun reports, once, whether closed sockets went unheard since it was last asked.
	Overrun() bool
}

// Sizes and places of the messages, in the machine's byte order (linux/netlink.h, linux/inet_diag.h, linux/rtnetlink.h).
const (
	headerBytes  = 16 // struct nlmsghdr: u32 len, u16 type, u16 flags, u32 seq, u32 pid
	requestBytes = headerBytes + 56
	olderBytes   = headerBytes + 60
	messageBytes = 72  // struct inet_diag_msg
	remotePortAt = 6   // id.idiag_dport, in network order
	remoteAt     = 24  // id.idiag_dst
	cookieAt     = 44  // id.idiag_cookie
	inodeAt      = 68  // idiag_inode
	receivedAt   = 128 // tcp_info.tcpi_bytes_received (linux/tcp.h)

	messageError = 2  // NLMSG_ERROR
	messageDone  = 3  // NLMSG_DONE
	byFamily     = 20 // SOCK_DIAG_BY_FAMILY
	anyFamily    = 18 // TCPDIAG_GETSOCK, the older request
	attrInfo     = 2  // INET_DIAG_INFO: struct tcp_info

	protocolTCP = 6
	// connected has a bit for each state in which data may arrive or be left to read: ESTABLISHED 1, FIN_WAIT1 4,
	// FIN_WAIT2 5, CLOSE_WAIT 8, LAST_ACK 9, CLOSING 11 (net/tcp_states.h).
	connected = 1<<1 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11
)

// dumpRequest asks for all connected TCP sockets of an address family, with their tcp_info (sock_diag(7)).
func dumpRequest(family uint8, seq uint32) []byte {
	b := dump(requestBytes, byFamily, seq)
	b[16], b[17] = family, protocolTCP
	b[18] = 1 << (attrInfo - 1) // idiag_ext
	binary.NativeEndian.PutUint32(b[20:], connected)
	return b
}

// olderRequest asks for those of both address families (struct inet_diag_req). To find the sockets of one the kernel goes through its table of
// all connections, most of whose places are empty: with much memory that takes a millisecond or more, and twice as long for the families
// one by one. Of the older request it ignores the family since it has the newer one (net/ipv4/inet_diag.c, inet_diag_dump_compat).
func olderRequest(seq uint32) []byte {
	b := dump(olderBytes, anyFamily, seq)
	b[19] = 1 << (attrInfo - 1)                      // idiag_ext
	binary.NativeEndian.PutUint32(b[68:], connected) // idiag_states, behind 48 bytes of idiag_id
	return b
}

// dump is a message of so many bytes with its header filled in (struct nlmsghdr, netlink(7)).
func dump(length uint32, kind uint16, seq uint32) []byte {
	b := make([]byte, length)
	e := binary.NativeEndian
	e.PutUint32(b[0:], length)
	e.PutUint16(b[4:], kind)
	e.PutUint16(b[6:], 0x301) // NLM_F_REQUEST | NLM_F_DUMP
	e.PutUint32(b[8:], seq)
	return b
}

// parseSockets visits the sockets of one datagram. done is true at the end of a dump.
func parseSockets(b []byte, closed bool, visit func(Socket)) (done bool, err error) {
	for len(b) >= headerBytes {
		e := binary.NativeEndian
		length, kind := int64(e.Uint32(b)), e.Uint16(b[4:])
		if length < headerBytes || length > int64(len(b)) {
			return false, fmt.Errorf("parsing socket diagnostics: a message of %d bytes in %d: %w", length, len(b), errFormat)
		}
		body := b[headerBytes:length]
		switch kind {
		case messageDone:
			return true, refusal(body)
		case messageError:
			return true, refusal(body)
		case byFamily, anyFamily:
			if s, ok := parseSocket(body); ok {
				s.Closed = closed
				visit(s)
			}
		}
		b = b[min(align4(length), int64(len(b))):]
	}
	return false, nil
}

// refusal reads the error number a dump ends with, negative; 0 for success.
func refusal(body []byte) error {
	if len(body) < 4 {
		return nil
	}
	if errno := int32(binary.NativeEndian.Uint32(body)); errno < 0 {
		return fmt.Errorf("asking for socket diagnostics: %w", syscall.Errno(-int64(errno)))
	}
	return nil
}

// parseSocket reads one struct inet_diag_msg and its attributes; false if it is cut short.
func parseSocket(b []byte) (Socket, bool) {
	if len(b) < messageBytes {
		return Socket{}, false
	}
	e := binary.NativeEndian
	s := Socket{Cookie: e.Uint64(b[cookieAt:]), Inode: e.Uint32(b[inodeAt:]), Received: unknown}
	s.Remote.Port = binary.BigEndian.Uint16(b[remotePortAt:])
	copy(s.Remote.Address[:], b[remoteAt:])
	for b = b[messageBytes:]; len(b) >= 4; {
		length, kind := int64(e.Uint16(b)), e.Uint16(b[2:])
		if length < 4 || length > int64(len(b)) {
			break
		}
		if kind == attrInfo && length >= 4+receivedAt+8 {
			s.Received = e.Uint64(b[4+receivedAt:])
		}
		b = b[min(align4(length), int64(len(b))):]
	}
	return s, true
}

func align4(n int64) int64 { return (n + 3) &^ 3 }
