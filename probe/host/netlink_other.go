//go:build !linux

package host

import (
	"errors"
	"fmt"
)

// OpenTCP fails: socket diagnostics are Linux's own.
func OpenTCP() (SocketTable, error) {
	return nil, fmt.Errorf("%w: socket diagnostics exist on Linux only", errors.ErrUnsupported)
}
