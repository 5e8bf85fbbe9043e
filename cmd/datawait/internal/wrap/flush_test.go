package wrap

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
)

// TestARecordingIsWrittenSeldomerTheLongerItIs: every second at first, never less than a hundredth of the run ago, and every half
// minute in the end.
func TestARecordingIsWrittenSeldomerTheLongerItIs(t *testing.T) {
	dir := t.TempDir()
	w, err := recording.Create(dir, recording.Manifest{Host: "node"}, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := w.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	a := &agent{writer: w, began: 5e9, drainer: spool.Watch(t.TempDir(), w, spool.Options{})}
	var written []time.Duration
	size := int64(0)
	for elapsed := time.Duration(0); elapsed < 3*time.Hour; elapsed += time.Second {
		w.Records(id, make([]recording.Record, 1))
		jitter := time.Duration(elapsed.Nanoseconds() * 7919 % int64(3*time.Millisecond))
		if err := a.flush(context.Background(), a.began+uint64(elapsed+jitter)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(w.Dir(), "segment-000001.dws"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > size {
			size = info.Size()
			written = append(written, elapsed)
		}
	}
	for i := 1; i < len(written); i++ {
		lost := written[i] - written[i-1]
		if allowed := max(written[i]/100, time.Second) + time.Second; lost > allowed || lost > 31*time.Second {
			t.Errorf("after %v, nothing was written for %v", written[i-1], lost)
		}
		if elapsed := written[i-1]; elapsed < 100*time.Second && lost > time.Second || elapsed > 2*time.Hour && lost < 29*time.Second {
			t.Errorf("after %v it was written again after %v", elapsed, lost)
		}
	}
	if len(written) > 800 {
		t.Errorf("written %d times", len(written))
	}
}
