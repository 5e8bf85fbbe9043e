package loader

// Limits of [Model.LinkBound].
const (
	mostlyNarrow = 0.9  // of the working time: a link that is slow now and then saves power
	halfLink     = 0.55 // of its capacity: half the lanes, or a generation less
	fullLink     = 0.5  // of what the link can carry, as a mean over steps: copies come in bursts
	copiesCount  = 0.05 // exposed copy, of a step
)

// lane is what one lane of a PCIe link carries one way, in bytes/s, by generation: 2.5, 5, 8, 16, 32 and 64 GT/s less the
// encoding (8b/10b for the first two, 128b/130b for the next three, flits for the sixth).
var lane = [...]float64{0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9}

// Narrow is a PCIe link below what card and slot can do together.
type Narrow struct {
	Link
	Part  float64 // of the capacity it could have
	Used  Num     // of the capacity it has
	Bound bool    // it holds steps up
	Lost  float64 // seconds per step; 0 where not measured
}

// LinkBound says whether the PCIe link runs at half of what it could, or less, all the time the GPU works, and whether copies suffer.
// A link that goes down while the GPU is idle saves power and is no finding (F81).
func (m Model) LinkBound() (n Narrow, ok bool) {
	l := m.Parameters.Device.Link
	share, known := l.Narrow.Get()
	now, most := capacity(l.Generation, l.Lanes), capacity(l.MostGeneration, l.MostLanes)
	if !known || share < mostlyNarrow || now <= 0 || most <= 0 || now > halfLink*most {
		return Narrow{}, false
	}
	n = Narrow{Link: l, Part: now / most, Used: missing("what it carries was not counted")}
	if in, ok := l.In.Get(); ok {
		n.Used = some(in / now)
		n.Bound = in >= fullLink*now
	}
	if m.Parameters.Step.Copy.IsKnown() {
		n.Lost = m.Law.Copy * (1 - n.Part)
		n.Bound = m.Law.Copy >= copiesCount*m.Pace.Or(noEstimate).Value && m.Law.Copy > 0
	}
	return n, true
}

func capacity(generation, lanes int) float64 {
	if generation < 0 || generation >= len(lane) || lanes < 0 || lanes > 64 {
		return 0
	}
	return lane[generation] * float64(lanes)
}
