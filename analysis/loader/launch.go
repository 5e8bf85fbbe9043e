package loader

// Launch limits of [Model.Launching].
const (
	manyLaunches = 10   // kernels per step from which launching, not other host work, can fill a step
	smallKernel  = 1e-3 // seconds of device time per kernel below which the host may not keep ahead
	hollow       = 0.25 // SM activity while computing below which a resident kernel is no sign of work (M1, F61); DCGM's manual calls 0.5 "likely ineffective"
	noWait       = 0.05 // of a step: so little waiting that SM activity of whole steps is that of computing
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
	step := m.Pace.Or(noEstimate).Value
	resident, okResident := m.Parameters.Device.Resident.Get()
	if n, ok := m.Parameters.Device.Launches.Get(); ok && m.Law.Host > mainPart*m.Law.Compute {
		return n >= manyLaunches && okResident && resident*step/n < smallKernel
	}
	sm, ok := m.Computing().Get()
	return ok && okResident && sm < hollow && resident*step > mostlyThere*m.Law.Compute
}

// Computing is SM activity while the step computes: as unmixed, or of whole steps where hardly any of them waits.
func (m Model) Computing() Num {
	if d := m.Parameters.Device; d.SMComputing.IsKnown() || !d.SMActive.IsKnown() {
		return d.SMComputing
	}
	s := m.Parameters.Step
	wait, ok := s.Exposed.Get()
	if !ok {
		wait, ok = s.Wait.Get()
	}
	if t := s.Seconds.Or(noEstimate).Value; !ok || wait.Value > noWait*t {
		return missing("steps wait, so their SM activity is not that of computing")
	}
	return m.Parameters.Device.SMActive
}
