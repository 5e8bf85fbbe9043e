package loader

import (
	"math"

	"github.com/datawait/datawait/probe/unit"
)

// mostAsleep is the part of the device's time in which a training thread must be off the CPU to count as waiting for the device.
const mostAsleep = 0.8

// InTurn finds a training thread that waits for the device every step: it computes with the device idle, and is off the CPU while the device
// works, so the two take turns (F56, F57). Seconds are what a step of theirs would win side by side: the shorter of the two.
//
// A call that spins until the device is done (cudaDeviceScheduleSpin, which the driver chooses by itself where there are more cores than
// contexts) is on the CPU all the time, as a thread that is busy itself is; ok is false then, for nothing recorded tells them apart.
func (m Model) InTurn(l Law) (seconds float64, ok bool) {
	device := l.Compute - l.Host
	if !m.Known.Host || l.Ahead > 0 || m.Launching() || l.Host < 0.1*l.Compute || device < 0.1*l.Compute || l.MainCPU > l.Compute-mostAsleep*device {
		return 0, false
	}
	return math.Min(l.Host, device), true
}

// Emptied is the part of the data wait in which the device had nothing left to run: all of it where the training thread comes to next() with
// the device empty. It is unknown without the device's clock.
func (m Model) Emptied() Num {
	s := m.Parameters.Step
	exposed, ok := s.Exposed.Get()
	wait, okWait := s.Wait.Get()
	if !ok || !okWait || !(wait.Value > 0) {
		return unit.None[float64]("no device clock looked at the data wait")
	}
	return unit.Some(math.Min(1, exposed.Value/wait.Value))
}
