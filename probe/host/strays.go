package host

import "fmt"

// Endpoint is the far end of a connection: its port and address as the kernel shows them, an IPv4 address in the first
// four bytes.
type Endpoint struct {
	Port    uint16
	Address [16]byte
}

// Bounds of what is remembered of far ends.
const (
	maxEndpoints  = 4096
	endpointPolls = 60 // polls a far end is remembered without a sight of it
)

// sights counts with how many connections to one far end each process was seen, poll by poll.
type sights struct {
	of    map[int]float64 // by pid
	total float64
	last  int // poll
}

// strays deals with connections that opened and closed between two polls, as a dataset makes that calls requests.get for
// each sample. The kernel tells how much they received and from where, but not for whom.
//
// Each poll sees the connections that are open at that instant, so over many polls a process is seen with the share of the
// connections to a server that it has. The bytes of strays from a server the job talks to are divided in that proportion: the
// sum is right where nobody else in this network namespace talks to that server, the parts are an estimate. The rest,
// from servers the job was never seen with, is left out and told.
type strays struct {
	seen    map[Endpoint]*sights
	waiting []Socket // of this poll
	divided uint64   // bytes, so far
	left    uint64   // bytes given to nobody, so far
	told    uint64   // divided + left when it was last told
}

// sight notes that a process was seen with a connection to a far end.
func (s *strays) sight(e Endpoint, pid, poll int) {
	if s.seen == nil {
		s.seen = map[Endpoint]*sights{}
	}
	v := s.seen[e]
	if v == nil {
		if len(s.seen) >= maxEndpoints {
			return
		}
		v = &sights{of: map[int]float64{}}
		s.seen[e] = v
	}
	v.of[pid]++
	v.total++
	v.last = poll
}

// divide gives the bytes of this poll's strays to the processes that still run.
func (s *strays) divide(give map[int]*inflow) {
	for _, k := range s.waiting {
		v := s.seen[k.Remote]
		if v == nil || v.total == 0 {
			s.left += k.Received
			continue
		}
		s.divided += k.Received
		for pid, n := range v.of {
			if p := give[pid]; p != nil {
				p.bytes += float64(k.Received) * n / v.total
			}
		}
	}
	s.waiting = s.waiting[:0]
}

// forget drops processes that ended and far ends not seen for long.
func (s *strays) forget(living map[int]*inflow, poll int) {
	for e, v := range s.seen {
		if poll-v.last >= endpointPolls {
			delete(s.seen, e)
			continue
		}
		for pid, n := range v.of {
			if living[pid] == nil {
				v.total -= n
				delete(v.of, pid)
			}
		}
	}
}

// news returns what to say of strays, "" if that has not changed by much: it is said from a megabyte on, and again at each
// tenfold.
func (s *strays) news() string {
	if s.divided+s.left < 1e6 || s.divided+s.left < 10*s.told {
		return ""
	}
	s.told = s.divided + s.left
	return fmt.Sprintf("connections that opened and closed within a second received at least %.2g bytes: %.2g were divided among the job's "+
		"processes by how often each was seen with that server, %.2g could be given to nobody",
		float64(s.told), float64(s.divided), float64(s.left))
}
