//go:build linux && cgo

package nvml

import (
	"sync"
	"time"

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
	if !l.has("nvmlEventSetCreate") || !l.has("nvmlEventSetFree") || !l.hasAny("nvmlEventSetWait_v2", "nvmlEventSetWait") || !l.has("nvmlDeviceRegisterEvents") {
		close(x.ended)
		return x
	}
	set, r := bind.EventSetCreate()
	if r != bind.SUCCESS {
		close(x.ended)
		return x
	}
	of := map[bind.Device][]concerned{}
	for i, h := range handles {
		whole := h.whole()
		if of[whole] == nil && whole.RegisterEvents(bind.EventTypeXidCriticalError, set) != bind.SUCCESS {
			continue
		}
		of[whole] = append(of[whole], concerned{uint16(i), h.GI})
	}
	go x.wait(set, of)
	return x
}

// concerned is a GPU or slice that an error may be of.
type concerned struct {
	ref uint16
	gi  int // -1 for a whole GPU
}

// wait takes errors until it is stopped. A GPU that is lost makes waiting fail, and the others may still have something to tell.
func (x *xids) wait(set bind.EventSet, of map[bind.Device][]concerned) {
	defer close(x.ended)
	defer set.Free()
	for {
		select {
		case <-x.end:
			return
		default:
		}
		data, r := set.Wait(500)
		switch r {
		case bind.SUCCESS:
			x.tell(data, of)
		case bind.ERROR_TIMEOUT:
		default:
			select {
			case <-x.end:
			case <-time.After(time.Second):
			}
		}
	}
}

// tell adds the error for the GPU, or for the slices that it is of: all, unless it names an instance. The GPU is known by its handle, as
// one that the error took along tells no UUID any more.
func (x *xids) tell(data bind.EventData, of map[bind.Device][]concerned) {
	now := clock.Mono()
	for _, c := range of[data.Device] {
		if data.GpuInstanceId == everyInstance || c.gi < 0 || uint32(c.gi) == data.GpuInstanceId {
			x.add(recording.GPUEvent{Ref: c.ref, T: now, Code: recording.GPUEventXid, Value: data.EventData})
		}
	}
}

const everyInstance = 0xffffffff // nvmlEventData_t.gpuInstanceId of an event that is not of one

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

// stop ends the waiting, if the driver lets go of it in time.
func (x *xids) stop() {
	close(x.end)
	select {
	case <-x.ended:
	case <-time.After(time.Second):
	}
}
