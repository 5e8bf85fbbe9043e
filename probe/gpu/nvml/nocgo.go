//go:build !linux || !cgo

package nvml

import (
	"context"
	"errors"

	"github.com/datawait/datawait/probe/gpu"
)

// Built says whether this build can use the library.
const Built = false

var errNoCgo = errors.New("this datawait was built without cgo and cannot use NVML: use the released binary, or build with CGO_ENABLED=1")

// OpenStates says that this build has no NVML.
func OpenStates(context.Context) (gpu.Source, error) { return nil, errNoCgo }

// OpenGPM says that this build has no NVML.
func OpenGPM(context.Context, Options) (gpu.Source, error) { return nil, errNoCgo }

// Capture says that this build has no NVML.
func Capture() (gpu.Capture, error) { return gpu.Capture{}, errNoCgo }
