package doctor

import (
	"debug/elf"
	"os"

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
	return []Finding{built, binding(os.Getenv("LD_BIND_NOW"), boundNow("/proc/self/exe"))}
}

// binding says when the symbols of NVIDIA's libraries are looked up: all at the start, one that the installed library lacks keeps
// datawait's GPU child from starting (ld.so(8), LD_BIND_NOW; ld(1), -z now).
func binding(variable string, now bool) Finding {
	f := Finding{ID: "binding", Subject: Datawait, State: Good, Says: "symbols of NVIDIA's libraries are looked up when they are first used"}
	switch {
	case variable != "":
		f.State = Limited
		f.Says = "LD_BIND_NOW is set: a symbol that an older DCGM or driver lacks ends datawait's GPU child at its start"
		f.Raise = "unset LD_BIND_NOW"
	case now:
		f.State = Limited
		f.Says = "this binary was linked with -z now: a symbol that an older DCGM or driver lacks ends datawait's GPU child at its start"
		f.Raise = "build with CGO_LDFLAGS=-Wl,-z,lazy, as make build does"
	}
	return f
}

// boundNow reports whether an executable asks for all its symbols at the start.
func boundNow(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	has := func(tag elf.DynTag, bit uint64) bool {
		values, err := file.DynValue(tag)
		return err == nil && len(values) > 0 && (bit == 0 || values[0]&bit != 0)
	}
	return has(elf.DT_BIND_NOW, 0) || has(elf.DT_FLAGS, uint64(elf.DF_BIND_NOW)) || has(elf.DT_FLAGS_1, uint64(elf.DF_1_NOW))
}
