// Package nvml asks NVIDIA's management library, through go-nvml, what GPUs there are, in what state, and who holds them; and on
// Hopper and newer GPUs it counts SM activity (GPM), without a daemon and without root.
//
// It is two sources. [OpenStates] stands beside whatever counts the GPUs: identity by UUID, memory, mean power from energy,
// clocks and what holds them down, the PCIe link, GPU-util, processes, Xid errors. [OpenGPM] is a rung of the ladder. GPM and a DCGM
// watch of one GPU disturb each other, so GPM counts only what it was asked to ([GPM.Use]).
//
// Before a function of the library is called it is looked up: one that an older driver lacks would end the process. Values
// that a GPU does not have are NaN or all bits set, never 0. Calls may block in the driver, so this belongs into a child process.
package nvml

import "time"

// Names of the two sources.
const (
	StatesName = "nvml"
	GPMName    = "nvml-gpm"
)

// Options of both sources.
type Options struct {
	Interval time.Duration // of a GPM window; 0 = 100 ms. The GPU refreshes its samples no faster
}

// BetweenProcesses is how often processes are listed at most: the driver takes milliseconds for it, holding a lock of the whole
// machine (MangoHud issue 2104).
const BetweenProcesses = 10 * time.Second
