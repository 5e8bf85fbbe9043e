//go:build !linux || !cgo

package dcgm

import (
	"context"
	"errors"

	"github.com/datawait/datawait/probe/gpu"
)

// Built says whether this build can use the library.
const Built = false

var errNoCgo = errors.New("this datawait was built without cgo and cannot use DCGM: use the released binary, or build with CGO_ENABLED=1")

// Open says that this build has no DCGM.
func Open(context.Context, Options) (gpu.Source, error) { return nil, errNoCgo }

// Capture says that this build has no DCGM.
func Capture(context.Context, Options) (gpu.Capture, error) { return gpu.Capture{}, errNoCgo }
