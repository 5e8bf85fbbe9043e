package gpu

import (
	"debug/elf"
	"os"
	"slices"
	"strings"
)

// bindNow is the variable that makes the dynamic linker look all symbols up at the start (ld.so(8)).
const bindNow = "LD_BIND_NOW"

// BoundAtOnce says why NVIDIA's libraries cannot be used by this process, "" if they can: their symbols are looked up when they are
// first called, after the library was loaded. Where all were looked up at the start they are absent for good.
func BoundAtOnce() string {
	if os.Getenv(bindNow) != "" {
		return bindNow + " is set, so that NVIDIA's libraries cannot be used: unset it"
	}
	if LinkedNow("/proc/self/exe") {
		return "this datawait was linked with -z now, so that NVIDIA's libraries cannot be used: build it with CGO_LDFLAGS=-Wl,-z,lazy, as make build does"
	}
	return ""
}

// LazyEnvironment is this process's environment for a child that uses NVIDIA's libraries.
func LazyEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, bindNow+"=") })
}

// LinkedNow reports whether an executable asks for all its symbols at the start (ld(1), -z now).
func LinkedNow(path string) bool {
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
