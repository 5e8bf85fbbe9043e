package loader

// Summary says whether predictions can be trusted, and what binds. Its JSON form is part of the report's contract.
type Summary struct {
	Trusted     bool   `json:"trusted"`
	Name        string `json:"name"`         // the law or the replay
	ReplayError Num    `json:"replay_error"` // |predicted − measured| ÷ measured for the configuration that ran
	UsableCores Num    `json:"usable_cores"`
	Reason      string `json:"reason"`
	// The terms of the law, seconds per step; unknown terms take no part.
	ComputeSeconds Num    `json:"compute_seconds"`
	SharedSeconds  Num    `json:"shared_seconds"`
	WorkerSeconds  Num    `json:"worker_seconds"` // L/W
	CoreSeconds    Num    `json:"core_seconds"`   // B/K
	Binding        string `json:"binding"`        // compute, shared, workers, cores, main
}
