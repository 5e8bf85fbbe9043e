package compare

import (
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/track"
	"github.com/datawait/datawait/probe/unit"
)

// Schema is the name and version of the JSON form of a [Comparison].
const Schema = "datawait.compare/1"

// Comparison is two runs side by side. Its JSON names are a contract: add freely, rename never.
type Comparison struct {
	Schema      string             `json:"schema"`
	Version     string             `json:"datawait_version"`
	Emulated    bool               `json:"emulated"` // both ran on the emulated device
	Comparable  bool               `json:"comparable"`
	Before      Side               `json:"before"`
	After       Side               `json:"after"`
	Objections  []Objection        `json:"objections"` // what keeps rows from being compared, or bears on them
	Rows        []Row              `json:"rows"`
	Batch       []Row              `json:"batch"`         // of the training loader: what building a batch takes
	Accounts    []Row              `json:"accounts"`      // shares of the allocated time
	Step        []Row              `json:"step_anatomy"`  // the parts of a mean step, seconds
	Epochs      unit.Maybe[int]    `json:"epochs"`        // of the run that is reckoned
	HourCost    analysis.Ratio     `json:"gpu_hour_cost"` // as the reader said; money is in the same currency
	Changes     []Change           `json:"changes"`
	Predictions []Check            `json:"predictions"`
	Unclear     []string           `json:"predictions_unclear"` // why a fix that may have been applied is not checked
	TrackRecord *track.TrackRecord `json:"track_record"`        // of the predictions checked on this machine, these included
}

// Side is one of the two runs.
type Side struct {
	Path      string                `json:"path"` // as it was named
	Name      string                `json:"name"`
	Command   []string              `json:"command"`
	StartedAt unit.Maybe[time.Time] `json:"started_at"`
	Version   string                `json:"datawait_version"` // of the program that wrote or analysed it
	Nodes     int                   `json:"nodes"`
	Ranks     int                   `json:"ranks"`
	GPUs      []string              `json:"gpus"` // models, each once
	Steps     int                   `json:"steps"`
	Steady    int                   `json:"steady_steps"` // that the step's numbers rest on
	Throwaway bool                  `json:"throwaway"`
}

// Row is one number of both runs.
type Row struct {
	ID         string       `json:"id"`
	Unit       string       `json:"unit"` // ratio, seconds, gpu_hours, money, count, bytes or per_second
	Before     analysis.Est `json:"before"`
	After      analysis.Est `json:"after"`
	Difference analysis.Est `json:"difference"` // after − before
	Ratio      analysis.Est `json:"ratio"`      // after ÷ before
	Outcome    Outcome      `json:"outcome"`
	Why        string       `json:"why"`  // it is not compared, or not weighed; "" elsewhere
	Note       string       `json:"note"` // what a reader must know to weigh it; "" elsewhere
}

// Outcome is what a row comes to.
type Outcome string

// The outcomes of a row.
const (
	Better        Outcome = "better"
	Worse         Outcome = "worse"
	Same          Outcome = "no-meaningful-difference"
	Unweighed     Outcome = "unweighed"      // no interval says whether the difference is more than chance
	NotComparable Outcome = "not-comparable" // both are known, and do not measure the same thing
	Unknown       Outcome = "unknown"        // one or both are not known
)

// Compared reports whether a row says anything of a difference.
func (o Outcome) Compared() bool { return o != NotComparable && o != Unknown }

// Objection is something that differs between the runs besides what is compared.
type Objection struct {
	ID   string   `json:"id"`
	Text string   `json:"text"`
	Rows []string `json:"rows"` // that are therefore not compared; none: it is only to be known
}

// Change is something that was made otherwise in the second run.
type Change struct {
	What   string `json:"what"` // an argument of the loader, dataset, command, ranks, gpu, usable_cores or start_method
	Before string `json:"before"`
	After  string `json:"after"`
}

// Check is a prediction of the first run beside what the second one took.
type Check struct {
	Fixes     []string         `json:"fixes"`
	Title     string           `json:"title"`
	Seen      string           `json:"seen"`   // how it is known that the fix was applied
	Metric    string           `json:"metric"` // step_seconds or epoch_seconds
	Before    analysis.Est     `json:"before"`
	Predicted analysis.Est     `json:"predicted"`
	Measured  analysis.Est     `json:"measured"`
	Within    unit.Maybe[bool] `json:"within"`  // the measured value lies in the predicted interval
	Error     analysis.Ratio   `json:"error"`   // measured ÷ predicted − 1
	Counted   bool             `json:"counted"` // in the track record
	Why       string           `json:"why"`     // it cannot be judged; "" elsewhere
	Key       string           `json:"key"`     // the same for the same two runs and fixes
}
