package alloc

import (
	"strconv"
	"strings"
)

// deviceID is what a device plugin calls a GPU, a slice of one, or its share of either.
type deviceID struct {
	uuid    string // "GPU-…" or "MIG-…"; "" = called by number
	number  int    // of /dev/nvidiaN, -1 = called by UUID
	gi      int    // GPU instance of a slice that is called by number, -1 = none
	replica bool   // others may get the same GPU
}

// parseDeviceID reads the names of NVIDIA's plugin, "GPU-…", "MIG-…" and with "::2" behind them their replicas
// (k8s-device-plugin v0.17, internal/rm/devices.go, AnnotatedID), and those of Google's: "nvidia0", "nvidia0/gi1" and
// "nvidia0/vgpu2" (dcgm-exporter, internal/pkg/transformation/kubernetes.go). ok is false for anything else.
func parseDeviceID(id string) (d deviceID, ok bool) {
	d = deviceID{number: -1, gi: -1}
	if strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-") {
		d.uuid, _, d.replica = strings.Cut(id, "::")
		return d, isUUID(d.uuid)
	}
	rest, ok := strings.CutPrefix(id, "nvidia")
	if !ok {
		return d, false
	}
	rest, _, d.replica = strings.Cut(rest, "/vgpu")
	number, gi, slice := strings.Cut(rest, "/gi")
	if d.number, ok = small(number); ok && slice {
		d.gi, ok = small(gi)
	}
	return d, ok
}

// isUUID reports whether a text can be the name of a GPU: what a person or a source may have made up as well as what a driver says.
func isUUID(s string) bool {
	if len(s) <= len("GPU-") || len(s) > 96 {
		return false
	}
	for _, c := range s {
		if c <= ' ' || c > '~' || c == '"' {
			return false
		}
	}
	return true
}

// small reads a number of a GPU or an instance.
func small(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 10)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return -1, false
	}
	return int(n), true
}
