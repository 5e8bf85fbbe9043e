package view

import "github.com/datawait/datawait/analysis"

// Timeline is the run over time, reduced to what a picture can show.
type Timeline struct {
	Panels []Panel
	Words  string // why there is no picture; "" where there is one
}

// Panel is one span of time.
type Panel struct {
	Title      string
	Begin, End float64 // seconds since the first observation
}

func timeline(r *analysis.Result) Timeline { return Timeline{Words: "No timeline was recorded."} }
