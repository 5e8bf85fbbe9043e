package gpu

import (
	"context"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// stuck hangs in Sample until it is let go.
type stuck struct {
	fake
	until chan struct{}
}

func (s *stuck) Sample(context.Context, uint64) (Batch, error) {
	<-s.until
	return Batch{Windows: []recording.GPU{{End: 7}}}, nil
}

func TestASourceThatHangsIsLeftAloneAndLosesNothing(t *testing.T) {
	ctx := context.Background()
	s := &stuck{until: make(chan struct{})}
	p := Patient(s, time.Millisecond)
	for range 3 {
		if b, err := p.Sample(ctx, 1); err == nil || len(b.Windows) > 0 {
			t.Fatalf("%+v, %v", b, err)
		}
	}
	if p.Close() == nil || s.closed {
		t.Error("a source was closed in the middle of a call")
	}
	close(s.until)
	for range 1000 {
		if b, err := p.Sample(ctx, 2); err == nil {
			if len(b.Windows) != 1 || p.Close() != nil || !s.closed {
				t.Errorf("%+v", b)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("what came late never arrived")
}
