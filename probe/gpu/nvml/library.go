//go:build linux && cgo

package nvml

import (
	"errors"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	bind "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/datawait/datawait/probe/gpu"
)

// Built says whether this build can use the library.
const Built = true

// library is the loaded libnvidia-ml.so.1.
type library struct {
	missing map[string]bool // functions it lacks, by their C names
}

// open loads and initialises the library. That loads the driver's state of every GPU and keeps it loaded.
func open() (*library, error) {
	if why := gpu.BoundAtOnce(); why != "" {
		return nil, errors.New("opening NVML: " + why)
	}
	if err := complete(); err != nil {
		return nil, fmt.Errorf("opening NVML: %w", err)
	}
	switch r := bind.Init(); r {
	case bind.SUCCESS:
	case bind.ERROR_LIBRARY_NOT_FOUND:
		return nil, errors.New("opening NVML: libnvidia-ml.so.1 is not here: no NVIDIA driver on this machine, or a container without it")
	case bind.ERROR_DRIVER_NOT_LOADED:
		return nil, errors.New("opening NVML: the NVIDIA driver is not loaded")
	default:
		return nil, fmt.Errorf("opening NVML: %s", bind.ErrorString(r))
	}
	return &library{missing: map[string]bool{}}, nil
}

// needed are the functions without which nothing can be read, each with the names that go-nvml v0.13.4 knows it by. A call of one that is
// not there ends the process. All others are looked up where they are called.
var needed = [][]string{{"nvmlInit_v2", "nvmlInit"}, {"nvmlShutdown"}, {"nvmlErrorString"}, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, {"nvmlDeviceGetUUID"}, {"nvmlDeviceGetName"}}

// complete reports whether the library is here and has these functions.
func complete() error {
	library := dl.New("libnvidia-ml.so.1", dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if library.Open() != nil {
		return nil // the binding says so itself
	}
	defer library.Close()
	for _, names := range needed {
		has := func(name string) bool { return library.Lookup(name) == nil }
		if !slices.ContainsFunc(names, has) {
			return fmt.Errorf("its library is of another version than this datawait can use: it has no %s", names[0])
		}
	}
	return nil
}

func (l *library) close() { bind.Shutdown() }

// has looks a function up, once.
func (l *library) has(symbol string) bool {
	missing, known := l.missing[symbol]
	if !known {
		missing = bind.Extensions().LookupSymbol(symbol) != nil
		l.missing[symbol] = missing
	}
	return !missing
}

// hasAny looks up a function that has several names, by version.
func (l *library) hasAny(symbols ...string) bool { return slices.ContainsFunc(symbols, l.has) }

// handle is one GPU or MIG slice.
type handle struct {
	gpu.Identity
	device bind.Device
	parent bind.Device // of a slice: the whole GPU
	name   string
	index  int64 // of the GPU, or of the one a slice is cut from
	lost   bool
}

// handles lists what can be opened; why names what was counted and could not.
func (l *library) handles() (all []*handle, why []string, err error) {
	count, r := bind.DeviceGetCount()
	if r != bind.SUCCESS {
		return nil, nil, fmt.Errorf("counting GPUs: %s", bind.ErrorString(r))
	}
	for i := range count {
		device, r := bind.DeviceGetHandleByIndex(i)
		if r == bind.SUCCESS {
			var found []*handle
			if found, r = l.of(device); r == bind.SUCCESS {
				for _, h := range found {
					h.index = int64(i)
				}
				all = append(all, found...)
				continue
			}
		}
		why = append(why, fmt.Sprintf("GPU %d: %s", i, bind.ErrorString(r)))
	}
	return all, why, nil
}

// of returns the GPU, or if it is in MIG mode its slices.
func (l *library) of(device bind.Device) ([]*handle, bind.Return) {
	uuid, r := device.GetUUID()
	if r != bind.SUCCESS {
		return nil, r
	}
	name, _ := device.GetName()
	whole := &handle{Identity: gpu.Whole(uuid), device: device, name: name}
	for _, f := range []string{"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId",
		"nvmlDeviceGetComputeInstanceId"} {
		if !l.has(f) {
			return []*handle{whole}, bind.SUCCESS
		}
	}
	if mode, _, r := device.GetMigMode(); r != bind.SUCCESS || mode != bind.DEVICE_MIG_ENABLE {
		return []*handle{whole}, bind.SUCCESS
	}
	most, r := device.GetMaxMigDeviceCount()
	if r != bind.SUCCESS {
		return nil, r
	}
	var slices []*handle
	for i := range most {
		slice, r := device.GetMigDeviceHandleByIndex(i)
		if r != bind.SUCCESS {
			continue // a gap in the numbering
		}
		s := &handle{device: slice, parent: device, name: name, Identity: gpu.Identity{Parent: uuid, GI: -1, CI: -1}}
		if s.UUID, r = slice.GetUUID(); r != bind.SUCCESS {
			continue
		}
		if gi, r := slice.GetGpuInstanceId(); r == bind.SUCCESS {
			s.GI = gi
		}
		if ci, r := slice.GetComputeInstanceId(); r == bind.SUCCESS {
			s.CI = ci
		}
		slices = append(slices, s)
	}
	if len(slices) == 0 { // in MIG mode and not cut yet
		return []*handle{whole}, bind.SUCCESS
	}
	return slices, bind.SUCCESS
}
