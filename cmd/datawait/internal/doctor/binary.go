package doctor

import (
	"os"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/dcgm"
)

// lookAtBinary says which sources this build can have, and whether the dynamic linker lets it start without NVIDIA's libraries.
func lookAtBinary() []Finding {
	built := Finding{ID: "build", Subject: Datawait, State: Good, Says: "built with the bindings of DCGM and NVML"}
	if !dcgm.Built {
		built.State = Missing
		built.Says = "built without cgo: DCGM and NVML cannot be used, only a scraped exporter and the emulated device"
		built.Raise = "use the released binary, or build with CGO_ENABLED=1 and gcc"
		return []Finding{built}
	}
	return []Finding{built, binding(os.Getenv("LD_BIND_NOW"), gpu.LinkedNow("/proc/self/exe"))}
}

// binding says when the symbols of NVIDIA's libraries are looked up: all at the start, they are absent for good (ld.so(8), LD_BIND_NOW;
// ld(1), -z now).
func binding(variable string, now bool) Finding {
	f := Finding{ID: "binding", Subject: Datawait, State: Good, Says: "symbols of NVIDIA's libraries are looked up when they are first used"}
	switch {
	case now:
		f.State = Limited
		f.Says = "this binary was linked with -z now: NVIDIA's libraries cannot be used"
		f.Raise = "build with CGO_LDFLAGS=-Wl,-z,lazy, as make build does"
	case variable != "":
		f.Says = "LD_BIND_NOW is set, and left out where NVIDIA's libraries are used"
	}
	return f
}
