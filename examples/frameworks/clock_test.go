package frameworks

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// clock is what a rank's script measured by itself, over the batches that stand for all others.
type clock struct {
	batches int
	wait    float64 // seconds from being done with a batch until the next one was there, the framework's own work included
	time    float64 // seconds from being done with a batch until being done with the next
}

func (c clock) share() float64 { return c.wait / c.time }

func sum(clocks []clock) (all clock) {
	for _, c := range clocks {
		all = clock{all.batches + c.batches, all.wait + c.wait, all.time + c.time}
	}
	return all
}

// warmup readings are left out after every start of an epoch and every validation: the loader's queue is full there, or empty.
const warmup = 2 * workers

// readClocks reads the clocks of so many ranks.
func readClocks(t *testing.T, dir string, ranks int) (clocks []clock) {
	t.Helper()
	for rank := range ranks {
		clocks = append(clocks, readClock(t, filepath.Join(dir, fmt.Sprintf("clock.%d", rank))))
	}
	return clocks
}

// readClock adds up the lines of one rank: "arrived done" in nanoseconds for a batch, "away" where something else came between.
func readClock(t *testing.T, path string) (c clock) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before, since := int64(0), 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var arrived, done int64
		if lines.Text() == "away" {
			before, since = 0, 0
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &arrived, &done); err != nil {
			break // the last line may be cut: a throw-away run is ended by SIGKILL
		}
		if since++; before != 0 && since > warmup {
			c.batches++
			c.wait += float64(arrived-before) / 1e9
			c.time += float64(done-before) / 1e9
		}
		before = done
	}
	if c.batches < 20 {
		t.Fatalf("%s tells of %d batches only", path, c.batches)
	}
	return c
}
