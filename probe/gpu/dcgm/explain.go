package dcgm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// errLost means that the connection, and with it every group and watch, is gone.
var errLost = errors.New("the connection to the host engine is lost")

// advice says what an error of the engine means and what to do about it; "" = all groups and watches must be made anew. Errors of
// go-dcgm are texts: most have what the engine calls the error, some its number (v1.4611.0).
var advice = []struct {
	code        int
	text, means string
}{
	{-21, "Host engine connection invalid", ""},
	{-5, "Setting not configured", ""},      // a group of a connection before
	{-16, "Field is not being updated", ""}, // the watch is gone, whatever took it
	{-36, "Profiling is not supported", "this GPU has no profiling counters"},
	{-33, "module of DCGM that is not currently loaded",
		"its profiling module is not installed (package datacenter-gpu-manager-4-proprietary); after installing it restart the nvidia-dcgm service"},
	{-29, "running as non-root", "GPUs before Hopper, and slices, let only root count: run the nvidia-dcgm service as root"},
	{-37, "Profiling module returned an unrecoverable error",
		"somebody else owns the counters: another host engine, Nsight, or a profiler that uses CUPTI counters. Use one host engine for all"},
	{-38, "cannot be collected in a single pass", "other clients of this engine count metrics that exclude these"},
	{-54, "currently paused", "dcgmi profile --resume ends that"},
	{-56, "NVML doesn't exist", "the host engine started before the NVIDIA driver was loaded, or without it: restart the nvidia-dcgm service"},
}

var numbered = regexp.MustCompile(`error code (-\d+)`)

// explain adds what a person needs to know; a lost connection becomes errLost.
func explain(err error) error {
	if err == nil || errors.Is(err, errLost) || errors.Is(err, errHung) {
		return err
	}
	code := codeOf(err.Error())
	for _, a := range advice {
		if code != a.code {
			continue
		}
		if a.means == "" {
			return fmt.Errorf("%w (%w)", errLost, err)
		}
		return fmt.Errorf("%w: %s", err, a.means)
	}
	return err
}

// codeOf returns the engine's number of an error that says it or that is known by its words, else 0.
func codeOf(text string) int {
	if m := numbered.FindStringSubmatch(text); m != nil {
		code, _ := strconv.Atoi(m[1])
		return code
	}
	for _, a := range advice {
		if strings.Contains(text, a.text) {
			return a.code
		}
	}
	return 0
}
