package dcgm

import (
	"errors"
	"fmt"
	"strings"
)

// errLost means that the connection, and with it every group and watch, is gone.
var errLost = errors.New("the connection to the host engine is lost")

// advice says what an error of the engine means and what raises it, by what its text contains: most errors of go-dcgm are texts.
var advice = []struct{ text, means string }{
	{"Host engine connection invalid", ""},
	{"error code -21", ""},
	{"Setting not configured", ""}, // a group of a connection before
	{"module of DCGM that is not currently loaded", "its profiling module is not installed (package datacenter-gpu-manager-4-proprietary); after installing it restart the nvidia-dcgm service"},
	{"error code -33", "its profiling module is not installed (package datacenter-gpu-manager-4-proprietary); after installing it restart the nvidia-dcgm service"},
	{"running as non-root", "it runs without root, and GPUs before Hopper let only root count: run the nvidia-dcgm service as root"},
	{"error code -29", "it runs without root, and GPUs before Hopper let only root count: run the nvidia-dcgm service as root"},
	{"Profiling module returned an unrecoverable error", "somebody else owns the counters: another host engine, Nsight, or a profiler that uses CUPTI counters. Use one host engine for all"},
	{"error code -37", "somebody else owns the counters: another host engine, Nsight, or a profiler that uses CUPTI counters. Use one host engine for all"},
	{"Profiling is not supported", "this GPU has no profiling counters"},
	{"error code -36", "this GPU has no profiling counters"},
	{"cannot be collected in a single pass", "other clients of this engine count metrics that exclude these"},
	{"error code -38", "other clients of this engine count metrics that exclude these"},
	{"currently paused", "profiling is paused; dcgmi profile --resume ends that"},
	{"error code -54", "profiling is paused; dcgmi profile --resume ends that"},
}

// explain adds what a person needs to know; a lost connection becomes errLost.
func explain(err error) error {
	if err == nil {
		return nil
	}
	for _, a := range advice {
		if !strings.Contains(err.Error(), a.text) {
			continue
		}
		if a.means == "" {
			return fmt.Errorf("%w (%w)", errLost, err)
		}
		return fmt.Errorf("%w: %s", err, a.means)
	}
	return err
}
