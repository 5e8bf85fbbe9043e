package prometheus

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/datawait/datawait/analysis/live"
)

// Options are what a Collector shows. The functions are called at every scrape, one scrape at a time; they have to be quick.
type Options struct {
	// Snapshot returns the newest; nil while there is none. Whoever keeps totals over restarts returns only what is saved already:
	// a counter that goes on below what was scraped looks as if it had begun anew, and all of it is counted again.
	Snapshot func() *live.Snapshot
	Agent    func() Agent

	// Unix returns the moment of CLOCK_MONOTONIC, in ns, as seconds since 1970.
	Unix func(mono uint64) float64

	ScrapeInterval   time.Duration // the longest of any server that scrapes; what is new is 0 for so long. 0 = 15 s
	Limit            int           // series of datawait that are shown at the most; 0 = 20000
	NativeHistograms bool          // step times have exponential buckets too
	Log              *slog.Logger  // nil = slog.Default()
}

// DefaultScrapeInterval and DefaultLimit are what an Options has that says nothing else.
const (
	DefaultScrapeInterval = 15 * time.Second
	DefaultLimit          = 20000
)

// Collector is a client_golang collector, and a gatherer of the same. Scrapes may overlap.
type Collector struct {
	o Options

	mu      sync.Mutex
	sets    map[key]*set
	turn    uint64 // number of the scrape
	samples int    // of the last scrape
	dropped int    // series, by the last scrape
	spare   *page  // one that has been sent
}

// key is a subject: a table and the values of its labels.
type key struct {
	table  string
	values values
}

// New returns a collector that has shown nothing yet.
func New(o Options) *Collector {
	o.ScrapeInterval = cmp.Or(max(o.ScrapeInterval, 0), DefaultScrapeInterval)
	o.Limit = cmp.Or(max(o.Limit, 0), DefaultLimit)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Collector{o: o, sets: map[key]*set{}}
}

// Describe lists every name.
func (c *Collector) Describe(ch chan<- *client.Desc) {
	for _, m := range names {
		ch <- m.desc
	}
}

// Collect shows everything.
func (c *Collector) Collect(ch chan<- client.Metric) {
	p := c.page()
	for i := range p.samples {
		ch <- &p.samples[i]
	}
}

// Gather shows everything, as a registry does that has only this collector. A registry holds every series of every scrape against
// all others, which is a third of what a scrape costs; here a series is there once because its set is, and tests hold the two
// to the same.
func (c *Collector) Gather() ([]*dto.MetricFamily, error) {
	return c.page().gather()
}

// borrow is Gather for one who says when the families have been sent: their memory is the next scrape's then. Made anew each time,
// it was most of what a scrape left to the garbage collector, whose work made one scrape in a hundred take twice as long.
func (c *Collector) borrow() ([]*dto.MetricFamily, func(), error) {
	p := c.page()
	families, err := p.gather()
	return families, func() { c.giveBack(p) }, err
}

// giveBack keeps the memory of one page.
func (c *Collector) giveBack(p *page) {
	p.empty()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = p
}

// blank is a page with nothing on it. The memory of one for far more series than there are now is let go.
func (c *Collector) blank() *page {
	p := c.spare
	c.spare = nil
	if p == nil || cap(p.samples) > 4*c.samples {
		p = &page{samples: make([]sample, 0, c.samples), families: make([]dto.MetricFamily, len(names))}
	}
	p.interval, p.native = uint64(c.o.ScrapeInterval), c.o.NativeHistograms
	return p
}

// names are all metrics in the order of their names.
var names = func() (all []*metric) {
	for _, s := range sections() {
		all = append(all, s.metrics...)
	}
	slices.SortFunc(all, func(a, b *metric) int { return cmp.Compare(a.name, b.name) })
	for i, m := range all {
		m.place = i
	}
	return all
}()

// page makes what one scrape shows.
func (c *Collector) page() *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	p := c.blank()
	agent := c.o.Agent()
	all := slices.Concat(candidates(sourceTable, agent.Sources), candidates(spoolTable, []Spools{agent.Spools}), candidates(processTable, agent.Processes))
	if s := c.o.Snapshot(); s != nil {
		p.at = s.At
		all = append(all, c.ofSnapshot(s)...)
	}
	shown := func() int { return p.series + 1 } // the series that tells it is the last
	dropped := c.admit(p, all, agentTable.size)
	c.admit(p, candidates(agentTable, []itself{c.itself(agent, shown, dropped)}), 0)
	c.forget()
	c.samples = len(p.samples)
	c.tell(dropped)
	return p
}

func (c *Collector) ofSnapshot(s *live.Snapshot) []candidate {
	gpus := make([]device, len(s.GPUs))
	for i, g := range s.GPUs {
		gpus[i] = device{g, c.unix(g.Window)}
	}
	trainers := make([]trainer, len(s.Ranks))
	for i, r := range s.Ranks {
		trainers[i] = trainer{r, c.unix(r.LastMoved)}
	}
	return slices.Concat(candidates(machineTable, []live.Machine{s.Machine}), candidates(deviceTable, gpus), candidates(holderTable, s.Holders),
		candidates(tenancyTable, s.Tenancies), candidates(rankTable, trainers), candidates(jobTable, s.Jobs))
}

// unix returns seconds since 1970, 0 for no time.
func (c *Collector) unix(mono uint64) float64 {
	if mono == 0 {
		return 0
	}
	return c.o.Unix(mono)
}

// tell logs once that series do not fit, and that they do again.
func (c *Collector) tell(dropped int) {
	switch {
	case dropped > 0 && c.dropped == 0:
		c.o.Log.Warn("there are more series than the limit allows; the metrics of some jobs are not shown", "dropped", dropped, "limit", c.o.Limit,
			"hint", "raise --series-limit")
	case dropped == 0 && c.dropped > 0:
		c.o.Log.Info("all series are shown again", "limit", c.o.Limit)
	}
	c.dropped = dropped
}
