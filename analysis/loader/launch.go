package loader

// Launch limits of [Model.Launching].
const (
	manyLaunches = 10   // kernels per step from which launching, not other host work, can fill a step
	smallKernel  = 1e-3 // seconds of device time per kernel below which the host may not keep ahead
	hollow       = 0.25 // SM activity while computing below which a resident kernel is no sign of work (M1, F61)
	mostlyThere  = 0.6  // of the step without its wait: kernels resident
)

// Launching says whether launching kernels, rather than running them, is what a step without loading consists of.
//
// Two signatures: many small kernels with the device idle between them (F60, scenario S25), or a device that always has a kernel
// resident and hardly any SM at work (M1). Host work with few or uncounted kernels is not called launching: it may be anything.
func (m Model) Launching() bool {
	if !m.Known.Compute || m.Law.Compute <= 0 {
		return false
	}
	step := m.Parameters.Step.Seconds.Or(noEstimate).Value
	resident, okResident := m.Parameters.Device.Resident.Get()
	if n, ok := m.Parameters.Device.Launches.Get(); ok && m.Law.Host > mainPart*m.Law.Compute {
		return n >= manyLaunches && okResident && resident*step/n < smallKernel
	}
	sm, ok := m.Parameters.Device.SMComputing.Get()
	return ok && okResident && sm < hollow && resident*step > mostlyThere*m.Law.Compute
}
