package serve

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/sampler"
)

// crew is the processes of one job, and what looks at the limits of their control group: every container has its own.
type crew struct {
	host    *host.Host
	members []host.Known
	remove  func()
}

// followCrews looks at the limits of every job that runs, and of no other.
func (a *agent) followCrews() {
	now := map[live.Tenant][]host.Known{}
	for id, m := range a.known {
		if t, ok := a.node.TenantOf(id); ok {
			now[t] = append(now[t], m.Known)
		}
	}
	for t, c := range a.crews {
		if c.members = now[t]; len(c.members) == 0 {
			c.remove()
			_ = c.host.Close() // files that were only read
			delete(a.crews, t)
		}
	}
	for t, members := range now {
		if a.crews[t] == nil && len(a.crews) < mostCrews {
			a.crews[t] = a.newCrew(t, members)
		}
	}
}

// mostCrews bounds how many jobs' limits are looked at; the others have none that are known.
const mostCrews = 256

func (a *agent) newCrew(t live.Tenant, members []host.Known) *crew {
	c := &crew{members: members, remove: func() {}}
	sink := &limitSink{a.shelf.Over(a.node.Agent(), &t), a.node, t}
	id, err := sink.Declare(a.declaration())
	if err != nil {
		return c
	}
	c.host = host.New(recording.NewAppender(sink, id), host.Options{Job: func() []host.Known { return c.members }, Self: os.Getpid(), Tick: a.options.pace.host})
	parts := c.host.Parts()
	i := slices.IndexFunc(parts, func(p host.Part) bool { return p.Name == limits })
	remove := a.sampler.Add(sampler.Probe{Name: limits, Every: parts[i].Every, Run: parts[i].Run})
	c.remove = func() {
		remove()
		if e, ok := sink.Sink.(recording.Ender); ok {
			e.End(id)
		}
	}
	return c
}

// limitSink takes what is told of one job's limits.
type limitSink struct {
	recording.Sink
	node   *live.Node
	tenant live.Tenant
}

// Records passes records on.
func (l *limitSink) Records(id recording.StreamID, records []recording.Record) error {
	for i := range records {
		if records[i].Kind() == recording.KindLimits {
			l.node.Limits(l.tenant, records[i].Limits())
		}
	}
	return l.Sink.Records(id, records)
}

// Note passes a note on.
func (l *limitSink) Note(id recording.StreamID, raw json.RawMessage) error {
	return l.Sink.Note(id, raw)
}
