//go:build linux && cgo

package dcgm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"

	"github.com/datawait/datawait/probe/gpu"
)

// needed are the functions of the library that this package calls through go-dcgm v1.4611.0. A call of one that is not there ends the
// process, so they are looked up first.
var needed = []string{"dcgmInit", "dcgmShutdown", "dcgmConnect_v2", "dcgmDisconnect", "errorString", "dcgmGetAllSupportedDevices",
	"dcgmEntitiesGetLatestValues", "dcgmGetGpuInstanceHierarchy", "dcgmGetGpuStatus", "dcgmProfGetSupportedMetricGroups", "dcgmGroupCreate",
	"dcgmGroupAddEntity", "dcgmFieldGroupCreate", "dcgmWatchFields", "dcgmUpdateAllFields", "dcgmGetValuesSince_v2"}

// embedding are further ones for an engine in this process.
var embedding = []string{"dcgmStartEmbedded", "dcgmStopEmbedded"}

// complete reports whether the library is here, has these functions and can be called.
func complete(functions ...string) error {
	if why := gpu.BoundAtOnce(); why != "" {
		return errors.New(why)
	}
	library := dl.New("libdcgm.so.4", dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := library.Open(); err != nil {
		return fmt.Errorf("DCGM's library is not here (package datacenter-gpu-manager-4-core): %w", err)
	}
	defer library.Close()
	var missing []string
	for _, f := range functions {
		if library.Lookup(f) != nil {
			missing = append(missing, f)
		}
	}
	if missing != nil {
		return fmt.Errorf("DCGM's library is of another version than this datawait can use: it has no %s", strings.Join(missing, ", "))
	}
	return nil
}
