package dcgm

import "time"

// mark is how far one feed was read. It is our own: what the engine calls the next time is the time of its answer,
// and the profiling module delivers samples after their time.
type mark struct {
	next int64 // the engine's µs at which the next read begins
}

// reach is how far back a read looks for a field that has not come while others have. The engine keeps more (see engine.start).
func reach(interval time.Duration) int64 { return int64(max(10*time.Second, 4*interval)) }

// advance moves the mark to the newest sample of the field that is furthest behind, less what may still come out of order (overlap),
// but not further back than reach (both ns). now is the engine's time at the answer in µs; what is stamped later is from before its
// clock was set back: the next read finds what was stamped since.
func (m *mark) advance(rows []row, now, overlap, reach int64) {
	newest := map[uint16]int64{}
	for _, r := range rows {
		if r.us > 0 && r.us <= now {
			newest[r.field] = max(newest[r.field], r.us)
		}
	}
	behind := now - reach/1000
	if len(newest) > 0 {
		behind = now
	}
	for _, us := range newest {
		behind = min(behind, us)
	}
	m.next = max(behind-overlap/1000, now-reach/1000)
}
