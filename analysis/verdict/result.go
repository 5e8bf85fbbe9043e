package verdict

import "github.com/datawait/datawait/analysis/loader"

// Verdict is one finding. Its JSON form is part of the report's contract.
type Verdict struct {
	ID          string     `json:"id"`
	Title       string     `json:"title"` // one sentence
	Confidence  float64    `json:"confidence"`
	Share       loader.Num `json:"share"` // of the step (or of the wall time, for epoch-start)
	Evidence    []Evidence `json:"evidence"`
	FalsifiedBy string     `json:"falsified_by"`
	Do          string     `json:"do"` // what makes the job visible, where nothing could be judged; "" where fixes say what to do
}

// Evidence is one measured number behind a verdict.
type Evidence struct {
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"` // ratio (0–1), times (how often one goes into the other), seconds, cores, bytes, count
	Source string  `json:"source"`
}

// Dropped is a finding that was considered and rejected.
type Dropped struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}
