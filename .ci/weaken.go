//go:build ignore

// Weaken lets a binary start where all symbols are bound at once (LD_BIND_NOW): it makes those of NVIDIA's libraries weak, which are
// looked up only when such a library was loaded. The bindings leave them undefined, and the loader ends a process for that before it
// could say a word; a weak one it takes for absent. What was bound at once stays absent, so the sources refuse to call it
// (probe/gpu, BoundAtOnce).
//
// Usage: go run .ci/weaken.go BINARY
package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run .ci/weaken.go BINARY")
		os.Exit(2)
	}
	if err := weaken(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "weaken:", err)
		os.Exit(1)
	}
}

// Layout of Elf64_Sym (elf(5)): u32 name, u8 info, u8 other, u16 section, u64 value, u64 size. Binding is the upper half of info.
const (
	symbolSize = 24
	infoAt     = 4
)

func weaken(path string) error {
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	table := f.SectionByType(elf.SHT_DYNSYM)
	if table == nil || f.Class != elf.ELFCLASS64 {
		return nil // without cgo there is nothing to bind
	}
	symbols, err := f.DynamicSymbols() // without the first, which is empty
	if err != nil {
		return err
	}
	changed, found := 0, 0
	for i, s := range symbols {
		if s.Section != elf.SHN_UNDEF || !nvidia(s.Name) {
			continue
		}
		if found++; elf.ST_BIND(s.Info) == elf.STB_WEAK {
			continue
		}
		binary[int(table.Offset)+(i+1)*symbolSize+infoAt] = byte(elf.STB_WEAK)<<4 | s.Info&0xf
		changed++
	}
	switch {
	case found == 0:
		return errors.New("no symbol of NVIDIA's libraries is undefined: have the bindings changed?")
	case changed == 0:
		return nil // go build left a binary alone that was weakened before
	}
	return os.WriteFile(path, binary, 0o755)
}

// nvidia tells the symbols of libdcgm.so.4 and libnvidia-ml.so.1 from all others.
func nvidia(name string) bool {
	return strings.HasPrefix(name, "dcgm") || strings.HasPrefix(name, "Dcgm") || strings.HasPrefix(name, "nvml") || name == "errorString"
}
