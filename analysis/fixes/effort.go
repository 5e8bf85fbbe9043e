package fixes

// effort is what a fix costs to make, cheapest first. Fixes that save alike are ordered by it.
type effort int

const (
	oneArgument effort = iota
	fewLines
	jobSetting
	stagingStep
	dataJob
	rewrite
	hardware
)

// String is how the report says it.
func (e effort) String() string {
	return [...]string{
		"one argument", "a few lines", "a setting of the job", "a staging step before training", "a job per data version",
		"a rewrite of the transforms", "other hardware",
	}[e]
}
