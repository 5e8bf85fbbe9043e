package serve

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
)

// What is chosen where nothing is said.
const (
	DefaultListen   = "127.0.0.1:9977"
	DefaultInterval = time.Second
	DefaultForget   = 10 * time.Minute
	DefaultScrape   = 15 * time.Second
	DefaultLimit    = 20000
	DefaultKeep     = 64 << 20
)

// Options of an agent that is left running. Zero values stand for the defaults.
type Options struct {
	Listen       string
	WebConfig    string // file of exporter-toolkit: TLS and passwords; "" = none
	ReportListen string // where reports are made on request; "" = nowhere
	ReportConfig string // like WebConfig; needed with ReportListen

	Spool  string // folder of the hooks' rings
	State  string // folder of what outlives the agent
	Socket string // where GPU samples are offered to other datawaits of this machine; "-" = nowhere

	GPU      gpusource.Choice
	Interval time.Duration // of a counter window

	Forget           time.Duration // for which a job's series stay after its end
	ScrapeInterval   time.Duration // the longest of any server that scrapes
	SeriesLimit      int
	NativeHistograms bool
	Keep             int64 // bytes of recordings of one job

	Version string
	Log     *slog.Logger

	pace pace
}

// pace is how often an agent looks. A counter that is scraped every 15 s need not be a second young, and each ring costs a few system
// calls a look.
type pace struct {
	spool, publish, host, lag, slice time.Duration
}

// environment is what DefaultFolders asks.
type environment struct {
	getenv func(string) string
	root   bool
}

// Folders returns where rings, state and socket are for this user: a service's, or one's own.
func Folders() (spool, state, socket string) {
	return environment{os.Getenv, os.Geteuid() == 0}.folders()
}

func (e environment) folders() (spool, state, socket string) {
	// systemd tells the folders it made for a unit, several of them with colons between (systemd.exec(5), RuntimeDirectory=).
	first := func(list string) string { name, _, _ := strings.Cut(list, ":"); return name }
	run, kept := first(e.getenv("RUNTIME_DIRECTORY")), first(e.getenv("STATE_DIRECTORY"))
	switch {
	case e.root:
		run, kept = cmp.Or(run, "/run/datawait"), cmp.Or(kept, "/var/lib/datawait")
	default:
		if run == "" && e.getenv("XDG_RUNTIME_DIR") != "" {
			run = filepath.Join(e.getenv("XDG_RUNTIME_DIR"), "datawait")
		}
		home := cmp.Or(e.getenv("XDG_STATE_HOME"), filepath.Join(e.getenv("HOME"), ".local", "state"))
		kept = cmp.Or(kept, filepath.Join(home, "datawait"))
		run = cmp.Or(run, filepath.Join(kept, "run"))
	}
	return filepath.Join(run, "spool"), kept, filepath.Join(run, "gpu.sock")
}

func (o Options) complete() Options {
	spool, state, socket := Folders()
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	o.Spool, o.State, o.Socket = cmp.Or(o.Spool, spool), cmp.Or(o.State, state), cmp.Or(o.Socket, socket)
	o.GPU.Kind = cmp.Or(o.GPU.Kind, gpusource.Auto)
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	o.Forget = cmp.Or(o.Forget, DefaultForget)
	o.ScrapeInterval = cmp.Or(o.ScrapeInterval, DefaultScrape)
	o.SeriesLimit = cmp.Or(o.SeriesLimit, DefaultLimit)
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.pace = paceOf(o)
	return o
}

// paceOf follows the scrapes: nothing need be younger than a third of their interval.
func paceOf(o Options) pace {
	third := min(max(o.ScrapeInterval/3, 500*time.Millisecond), 5*time.Second)
	p := pace{spool: min(third, 2*time.Second), publish: third, host: min(2*third, 10*time.Second), slice: 15 * time.Minute}
	p.lag = 15 * time.Second // an engine is asked every 10 s
	if o.GPU.Kind == gpusource.Emulated || o.GPU.Kind == gpusource.None {
		p.lag = 3*time.Second + 2*o.Interval
	}
	return p
}

// check refuses what cannot be meant.
func (o Options) check() error {
	switch {
	case o.Interval < 100*time.Millisecond || o.Interval > time.Minute:
		return errors.New("counter windows are from 100ms to 1m long")
	case o.ScrapeInterval < time.Second:
		return errors.New("a scrape interval is a second or longer")
	case o.Forget < 2*o.ScrapeInterval:
		return errors.New("series must stay for two scrapes after a job's end: --forget is at least twice --scrape-interval")
	case o.ReportListen != "" && o.ReportConfig == "":
		return errors.New("reports are given only to whoever names himself: --report-listen needs --report-web-config, a file with passwords or client certificates")
	}
	return nil
}
