//go:build linux && cgo

package nvml

import (
	"sync"

	bind "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// xids waits for errors of the driver in a goroutine of its own: waiting is a call that blocks.
type xids struct {
	mu     sync.Mutex
	events []recording.GPUEvent
	end    chan struct{}
	ended  chan struct{}
}

const mostXids = 1000 // that wait to be taken; a GPU that dies may send a flood

func watchXids(l *library, handles []*handle) *xids {
	x := &xids{end: make(chan struct{}), ended: make(chan struct{})}
	if !l.has("nvmlEventSetCreate") || !l.has("nvmlEventSetWait_v2") {
		close(x.ended)
		return x
	}
	set, r := bind.EventSetCreate()
	if r != bind.SUCCESS {
		close(x.ended)
		return x
	}
	refs := map[string]uint16{}
	for i, h := range handles {
		whole := h.UUID
		if h.parent != nil {
			whole = h.Parent
		}
		if _, known := refs[whole]; known {
			continue
		}
		if h.whole().RegisterEvents(bind.EventTypeXidCriticalError, set) == bind.SUCCESS {
			refs[whole] = uint16(i)
		}
	}
	go x.wait(set, refs)
	return x
}

func (x *xids) wait(set bind.EventSet, refs map[string]uint16) {
	defer close(x.ended)
	defer set.Free()
	for {
		select {
		case <-x.end:
			return
		default:
		}
		data, r := set.Wait(500)
		if r == bind.ERROR_TIMEOUT {
			continue
		}
		if r != bind.SUCCESS { // the driver cannot tell any more
			return
		}
		uuid, r := data.Device.GetUUID()
		if ref, ok := refs[uuid]; ok && r == bind.SUCCESS {
			x.add(recording.GPUEvent{Ref: ref, T: clock.Mono(), Code: recording.GPUEventXid, Value: data.EventData})
		}
	}
}

func (x *xids) add(e recording.GPUEvent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.events) < mostXids {
		x.events = append(x.events, e)
	}
}

// take returns what has come since.
func (x *xids) take() []recording.GPUEvent {
	x.mu.Lock()
	defer x.mu.Unlock()
	events := x.events
	x.events = nil
	return events
}

func (x *xids) stop() {
	close(x.end)
	<-x.ended
}
