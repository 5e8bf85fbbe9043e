package soak

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
)

// The soak: short trainings under record and diagnose in which a random process dies, is stopped or is told to end, at a
// random moment. Whatever it is, the recording stays readable, no total is wrong, the job ends as it would have without
// datawait, and nothing is left behind. Truth is the account that the training keeps in a file of its own.
//
//	SOAK_RUNS=1000 SOAK_SEED=7 go test -count=1 -timeout 3h -run TestSoak ./cmd/datawait/internal/soak
//
// A run that fails names its seed; SOAK_RUNS=1 SOAK_SEED=<that> makes the same choices again.
const (
	fewRuns  = 6 // without SOAK_RUNS
	parallel = 2
)

func TestSoak(t *testing.T) {
	runs, first := number(t, "SOAK_RUNS", fewRuns), uint64(number(t, "SOAK_SEED", 1))
	tally := &tally{counts: map[string]int{}}
	var seats = make(chan struct{}, parallel)
	t.Run("runs", func(t *testing.T) {
		for i := range runs {
			seed := first + uint64(i)
			t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
				t.Parallel()
				seats <- struct{}{}
				defer func() { <-seats }()
				soak(t, seed, tally)
			})
		}
	})
	t.Log(tally)
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is no number", variable, text)
	}
	return n
}

// soak makes one run and checks what it left.
func soak(t *testing.T, seed uint64, sum *tally) {
	s := newScene(t, seed)
	t.Log(s)
	j := s.start(t)
	s.strike(t, j)
	j.wait(t)
	s.check(t, j)
	sum.add(s, j, t.Failed())
}

// tally counts what the runs were.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(s *scene, j *soaked, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts["runs"]++
	c.counts["loader "+s.loader]++
	c.counts[s.command]++
	hit := fmt.Sprintf("%s %v", s.victim, s.blow)
	if j.struck == 0 {
		hit = "nobody: the run was over"
	}
	c.counts["hit "+hit]++
	if j.contaminated {
		c.counts["trained on cached batches"]++
	}
	if failed {
		c.counts["FAILED"]++
	}
}

func (c *tally) String() string {
	text := ""
	for _, name := range sortedKeys(c.counts) {
		text += fmt.Sprintf("\n%6d %s", c.counts[name], name)
	}
	return text
}
