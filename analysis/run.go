package analysis

import (
	"errors"
	"time"

	"github.com/datawait/datawait/analysis/baseline"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// Options are what a reader may choose. The zero Options is right for a report.
type Options struct {
	Version   string        // of the program that writes the result
	Name      string        // of the job; "" takes the script's name from the command
	IdleAfter time.Duration // without a sign of life for so long, a held GPU is idle; 0 means a minute
	HourCost  float64       // of a GPU, in any currency; 0 = not told
	AtOnce    int           // how many ranks are studied side by side, which is what memory grows with; 0 means 2. It changes no number
}

// ErrNothing means that Run was given no recording at all.
var ErrNothing = errors.New("nothing to analyse: no recording was given")

// Run reads a job's recordings, one per node, and returns what they say. It fails only where a recording cannot be read: what
// is missing or contradictory in one is part of the result.
func Run(nodes []recording.Reader, o Options) (*Result, error) {
	if len(nodes) == 0 {
		return nil, ErrNothing
	}
	job, err := load.Survey(nodes)
	if err != nil {
		return nil, err
	}
	r := &run{job: job, options: o, crews: map[uint16]*crew{}, out: &Result{Schema: Schema, Version: o.Version, Nodes: []string{}, Ranks: []Rank{}, Loaders: []Loader{}, GPUs: []GPU{}, Trials: []Trial{},
		Step: Step{Anatomy: []Part{}}}}

	r.align()                         // which rank runs on which GPU
	if err := r.study(); err != nil { // what each of them did
		return nil, err
	}
	r.gpus()      // what their counters showed
	r.baseline()  // the cached-data test
	r.anatomy()   // where a step's time goes
	r.loaders()   // where a batch's time goes
	r.ranks()     // every training process
	r.host()      // the machine around them
	r.summary()   // the job as a whole
	r.quality()   // how far to believe all this
	r.timeline()  // the pictures
	r.diagnosis() // what it means, and what to do

	return r.out, nil
}

// run is one analysis under way: what was loaded, what the passes found so far, and the result they fill.
type run struct {
	job     *load.Job
	options Options
	out     *Result
	ranked  []*rank
	devices []*device
	begin   int64 // of the whole observation, on the common clock
	end     int64
	crews   map[uint16]*crew
	foreign int               // GPUs that were watched and are not the job's, as far as is known
	warn    []string          // what passes have to say before quality gathers it
	test    *baseline.Outcome // nil if there was none
}
