package host

import "fmt"

// UsageOf reads what one process of datawait itself costs: "self", or the agent's child by its pid. cpu is its CPU time in ns
// since it started, in steps of 10 ms; rss the bytes it has in RAM.
func UsageOf(fs FS, process string) (cpu, rss uint64, err error) {
	b, err := newFiles(fs).read(fs.Proc + "/" + process + "/stat")
	if err != nil {
		return unknown, unknown, err
	}
	s, err := parseProcessStat(b)
	if err != nil {
		return unknown, unknown, err
	}
	if s.ended() {
		return unknown, unknown, fmt.Errorf("reading what process %s uses: it ended", process)
	}
	cpu = s.own()
	if cpu > unknown/nanosPerTick {
		return unknown, s.resident(), nil
	}
	return cpu * nanosPerTick, s.resident(), nil
}
