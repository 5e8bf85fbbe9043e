package alloc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/datawait/datawait/probe/recording"
)

// numbering is what a bare number of a GPU may mean. Programs that number GPUs count in one of two orders: by the minor number of
// /dev/nvidiaN, or along the PCI bus as NVML and DCGM do. Slurm did the first and does the second (src/interfaces/gres.c: "GPUs … want it
// to match the order they enumerate on the PCI bus, and this isn't always the same order as the device file names").
type numbering struct {
	minor map[int]string // → UUID
	order map[int]string // → UUID, along the bus
	known bool           // the driver told both
	cut   bool           // some GPU is cut into slices, which Slurm numbers too
}

const maxGPUs = 128 // folders of GPUs that are looked into

// numberer asks what numbers mean. The driver answers under a lock that the job needs too, so it is asked only when there is a number to
// read, and no more once it has told of every GPU: that stays so until the driver is loaded anew.
type numberer struct {
	proc string
	told *numbering
}

func (n *numberer) now(gpus []recording.GPUNote) numbering {
	if n.told == nil {
		asked := readNumbering(n.proc, gpus)
		if !asked.known || slices.Contains(slices.Collect(maps.Values(asked.order)), "") {
			return asked
		}
		n.told = &asked
	}
	again := *n.told
	again.cut = cut(n.proc, gpus)
	return again
}

// cut reports whether some GPU is cut into slices: there is a folder for each GPU instance (NVIDIA MIG User Guide, "/proc based
// capabilities"), or a source has seen a slice.
func cut(proc string, gpus []recording.GPUNote) bool {
	instances, _ := filepath.Glob(filepath.Join(proc, "driver/nvidia/capabilities/gpu*/mig/gi*"))
	return len(instances) > 0 || slices.ContainsFunc(gpus, func(g recording.GPUNote) bool { return g.Parent != "" })
}

// readNumbering asks the driver, and where it tells nothing what a GPU source said.
func readNumbering(proc string, gpus []recording.GPUNote) numbering {
	n := numbering{minor: map[int]string{}, order: map[int]string{}, cut: cut(proc, gpus)}
	for i, uuid := range n.driver(filepath.Join(proc, "driver/nvidia/gpus")) {
		n.order[i] = uuid
	}
	if n.known {
		return n
	}
	for _, g := range gpus {
		if at, ok := g.Index.Get(); ok && at >= 0 && at < maxGPUs {
			n.order[int(at)] = cmp.Or(g.Parent, g.UUID)
		}
	}
	return n
}

// driver reads /proc/driver/nvidia/gpus/<PCI address>/information: UUIDs along the bus, "" where one is not told.
func (n *numbering) driver(folder string) (uuids []string) {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) > maxGPUs {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) }) // a domain has 4 or 8 digits
	for _, name := range names {
		uuid, minor := information(filepath.Join(folder, name, "information"))
		uuids = append(uuids, uuid)
		if uuid != "" && minor >= 0 {
			n.minor[minor], n.known = uuid, true
		}
	}
	return uuids
}

// information reads what the driver says of one GPU. A GPU that nobody has opened yet has question marks for a UUID.
func information(path string) (uuid string, minor int) {
	b, err := readSmall(path)
	if err != nil {
		return "", -1
	}
	minor = -1
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "GPU UUID":
			if isUUID(value) && !strings.Contains(value, "?") {
				uuid = value
			}
		case "Device Minor":
			minor, _ = small(value)
		}
	}
	return uuid, minor
}

// whole returns the GPU of a number that names whole GPUs, unless it could be a slice's.
func (n numbering) whole(number int) (uuid string, err error) {
	if n.cut {
		return "", errors.New("GPUs of this machine are cut into slices, and whether a number means a GPU or a slice is not told")
	}
	return n.gpu(number)
}

var errTwoOrders = errors.New("the GPUs of this machine have one order by device file and another along the PCI bus, and which one a number means is not told")

// gpu returns the GPU of a number, if both orders agree.
func (n numbering) gpu(number int) (uuid string, err error) {
	uuid = n.order[number]
	if n.known && n.minor[number] != uuid {
		return "", errTwoOrders
	}
	if uuid == "" {
		return "", fmt.Errorf("there is no GPU %d here, or nobody tells its UUID", number)
	}
	return uuid, nil
}

// slice returns the UUIDs of a GPU instance: those of its compute instances.
func sliceOf(gpus []recording.GPUNote, parent string, gi int) (uuids []string) {
	for _, g := range gpus {
		if at, ok := g.GI.Get(); ok && int(at) == gi && g.Parent == parent && g.UUID != "" {
			uuids = append(uuids, g.UUID)
		}
	}
	return uuids
}

const maxSmall = 64 << 10 // bytes of a small file

// readSmall reads a small regular file, or one of /proc. A pipe or a device in its place is not opened: that could block.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading %s: %w", path, fs.ErrInvalid)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 0, 4096)
	for len(b) < maxSmall {
		b = slices.Grow(b, 4096)
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if n == 0 || err != nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("reading %s: longer than %d bytes", path, maxSmall)
}
