package cost

import (
	"strconv"
	"strings"
)

// sizeAfter finds the line that begins with a key and returns its kB as bytes; 0 where there is none.
func sizeAfter(text []byte, key string) int64 {
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, key)
		if !ok {
			continue
		}
		kB, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return kB << 10
	}
	return 0
}
