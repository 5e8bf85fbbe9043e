package host

import "fmt"

// Usage is what one process of datawait itself costs.
type Usage struct {
	CPU uint64 // ns since it started
	RSS uint64 // bytes in RAM
}

// UsageOf reads what a process uses: "self", or the agent's child by its pid. CPU comes in steps of 10 ms.
func UsageOf(fs FS, process string) (Usage, error) {
	b, err := newFiles(fs).read(fs.Proc + "/" + process + "/stat")
	if err != nil {
		return Usage{}, err
	}
	s, err := parseProcessStat(b)
	if err != nil {
		return Usage{}, err
	}
	if s.ended() {
		return Usage{}, fmt.Errorf("reading what process %s uses: it ended", process)
	}
	u := Usage{CPU: unknown, RSS: (&member{stat: s}).resident()}
	if own := s.own(); own < unknown/nanosPerTick {
		u.CPU = own * nanosPerTick
	}
	return u, nil
}
