package host

import "bytes"

// parseInterfaces calls visit for each interface of /proc/net/dev with the bytes it received since it appeared
// (proc_pid_net(5)). The file is that of a network namespace: a container sees its own interfaces.
//
//	Inter-|   Receive                                                |  Transmit
//	 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets …
//	    lo: 2776770   11307    0    0    0     0          0         0  2776770   11307 …
//
// A long name leaves no blank after its colon, and an alias has a colon of its own ("eth0:1:"), so the last one counts.
func parseInterfaces(b []byte, visit func(name []byte, received uint64)) {
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		colon := bytes.LastIndexByte(line, ':')
		if colon < 0 {
			continue
		}
		name := bytes.TrimSpace(line[:colon])
		received, _ := nextNumber(line[colon+1:])
		if len(name) > 0 && received != unknown {
			visit(name, received)
		}
	}
}

// loopback is the interface on which a process talks to its own machine. It is recorded under its own name and never
// summed with the others: bytes that arrive there were sent here, by a local cache or an object-store emulator.
const loopback = "lo"
