package analysis

// diagnosis says what the numbers mean and what to do.
func (r *run) diagnosis() {}
