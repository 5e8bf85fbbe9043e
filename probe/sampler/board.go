package sampler

import (
	"slices"
	"sync"
	"time"
)

// Health is how a source does right now, for whoever shows it while the loop runs. Totals are since the loop began.
type Health struct {
	Name     string
	Success  bool
	Why      string        // why it has no data; "" = it has
	Duration time.Duration // of the last run
	CPU      time.Duration // of the last run
	Late     time.Duration // of the last run, behind its tick
	At       uint64        // CLOCK_MONOTONIC in ns, when the last run ended
	Runs     uint64
	Errors   uint64 // of Runs; "unsupported" is none
	Skipped  uint64 // ticks left out because the loop was behind
}

// board is where the loop posts and others look.
type board struct {
	mu     sync.Mutex
	health []Health
}

func (b *board) post(src *source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.health, func(h Health) bool { return h.Name == src.Name })
	if i < 0 {
		i = len(b.health)
		b.health = append(b.health, Health{Name: src.Name})
	}
	h := &b.health[i]
	h.Success, h.Why, h.Skipped = src.state == working, src.why, src.skipped
	h.Duration, h.CPU, h.Late = time.Duration(src.last.duration), time.Duration(src.last.cpu), time.Duration(src.last.late)
	h.At = src.last.at
	h.Runs++
	if src.state == failing {
		h.Errors++
	}
}

// Health returns how each source does, in the order they first ran. It may be called from any goroutine.
func (s *Sampler) Health() []Health {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	return slices.Clone(s.board.health)
}
