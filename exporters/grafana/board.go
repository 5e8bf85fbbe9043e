package main

// board is a dashboard before it is Grafana's.
type board struct {
	file, uid, title, about string
	variables               []variable
	rows                    []row
}

type row struct {
	title  string
	panels []panel
}

// kind is how a panel shows its numbers.
type kind uint8

const (
	lines  kind = iota // over time
	stack              // over time, one upon another
	number             // of now, or of the whole range
	grid               // one row for each set of labels
	heat               // of a histogram over time
	onOff              // 0 or 1 over time
)

// panel is one picture. about says what its numbers mean and what it means when there is none: Grafana shows it behind the title's i.
type panel struct {
	kind          kind
	title, about  string
	unit          string // Grafana's name of it
	width, height uint32 // of 24 columns; in rows of 30 px
	queries       []query
	colors        map[string]string // by legend
	columns       []column          // of a table, in their order
	most          float64           // of the axis; 0 = as it comes
}

// query is one expression of a panel.
type query struct {
	expr   string
	legend string // of a line; of a table the name of its value column
}

// column is a column of a table: a label, or the legend of a query.
type column struct {
	name, title, unit string
}

// variable is a choice at the top of a dashboard. Several values can be chosen of each: only then does Grafana escape what is special in
// a regular expression, as in the job "(shared)" (interpolateQueryExpr in its Prometheus data source).
type variable struct {
	name, title string
	label       string // whose values are offered
	metric      string // that has it
	all         bool   // also all of them, which is what is chosen first
}

// What the dashboards can be narrowed to.
func jobVariables(allJobs bool) []variable {
	const all = `{__name__=~"datawait_gpu_allocated_seconds_total|datawait_training_seconds_total"`
	return []variable{
		{name: "training_namespace", title: "Namespace", label: "training_namespace", metric: all + `}`, all: true},
		{name: "training_job", title: "Job", label: "training_job", metric: all + `,training_namespace=~"$training_namespace"}`, all: allJobs},
		{name: "gpu_uuid", title: "GPU", label: "gpu_uuid", all: true,
			metric: `datawait_gpu_allocated_seconds_total{training_namespace=~"$training_namespace",training_job=~"$training_job"}`},
	}
}
