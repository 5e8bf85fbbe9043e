// Package spool finds the rings of a running job and drains them into a recording.
//
// It decides which process has ended, and when a ring is read for the last time; what a ring's bytes mean is decided by
// package recording. A ring that cannot be read is counted and left alone: it never ends the drain, and the job never
// notices. Nothing here waits, sleeps or reads a clock: [Drainer.Poll] is called with the time.
//
// Read [Drainer] and [Process] first.
package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/datawait/datawait/probe/recording"
)

// Options of a Drainer. The zero value is the default.
type Options struct {
	// MaxRings bounds the rings followed at once; further ones wait until others end. 0 = 4096.
	MaxRings int
	// MaxOpen bounds the files kept open between two polls. 0 = 256.
	MaxOpen int
	// Below lets rings be followed, too, that lie in this user's own folder in the spool.
	Below bool
	// Remove lets [Drainer.RemoveEnded] delete the rings that were read to their end. A job that starts workers every epoch
	// would otherwise fill the memory its spool lies in. Only the agent that made the spool may ask for it.
	Remove bool
	// Alive reports whether the process with this pid and start time (clock ticks since boot) runs. nil looks into /proc.
	Alive func(pid int, startTicks uint64) bool
	// Namespace is the pid namespace in which Alive knows pids, by its inode. 0 = this process's own.
	Namespace uint64
	// MaxCapacity refuses rings that hold more records; 0 = none that the format allows.
	MaxCapacity uint32
	// Silent is for how long, in ns, a ring may stand still whose process lives in another pid namespace and is not found in /proc: then
	// it counts as ended. 0 = for ever, which is right where the job's own end is seen.
	Silent uint64
	// AliveEvery is the time, in ns, between two looks at whether a process lives. 0 = 1 s.
	AliveEvery uint64
}

const (
	rescanEvery = 1e9 // ns between two readings of the folder in which nothing seems to have changed
	workerEvery = 5e8 // ns between two readings of a worker's ring, unless it will be overrun soon; a training process's is read at every poll
	fullSoon    = 2e9 // ns: a ring that would be overrun in less time is read more often
	ringTries   = 3   // polls in which a ring may be unreadable before it is given up
)

// Drainer follows the rings of one spool folder. It is for one goroutine.
type Drainer struct {
	dir     string
	sink    recording.Sink
	options Options

	rings   map[string]*ring // followed, by file name
	order   []string         // their names in the order they are polled; nil = to be made
	done    map[string]bool  // read to their end or given up
	ended   []string         // read to their end, to be removed: paths
	seen    int              // signs of Python processes that were taken away
	scanned uint64           // ns, when the folder was last read; 0 = never
	modTime int64            // of the folder at that time
	waiting int              // rings not followed because of MaxRings
	counts  Counts
	held    []Held
	steady  int     // for how many looks of a Yard at it the folder has not changed; above 1 it is not read
	takes   int     // records that may be looked at in one poll; 0 = any number
	taken   int     // in the last poll, as far as rings say how many there are
	turn    int     // where the next poll begins, if the last one took all it may
	census  *census // of processes of other pid namespaces
	filling bool    // the last poll found a ring that will be overrun soon
	sinkErr error
}

// Counts says what a Drainer found so far.
type Counts struct {
	Mains   int // rings of training processes
	Workers int // rings of worker processes
	Ended   int // rings read to their end
	Bad     int // files named like a ring that could not be read
	Waiting int // rings not followed yet: MaxRings are
	Seen    int // Python processes in which the hook's sitecustomize ran
	Lost    uint64
	Torn    uint64
	LastBad error // why the last bad ring was
}

// Watch returns a Drainer of the rings in dir, now and later, into sink. The folder need not exist yet.
func Watch(dir string, sink recording.Sink, o Options) *Drainer {
	o.MaxRings = cmp.Or(o.MaxRings, 4096)
	o.MaxOpen = cmp.Or(o.MaxOpen, 256)
	if o.Alive == nil {
		o.Alive = processLives
	}
	o.Namespace = cmp.Or(o.Namespace, Namespace())
	o.AliveEvery = cmp.Or(o.AliveEvery, 1e9)
	return &Drainer{dir: dir, sink: sink, options: o, rings: map[string]*ring{}, done: map[string]bool{}, census: &census{}}
}

// Poll takes everything new out of the spool. now is CLOCK_MONOTONIC in ns. The error is the sink's, or that the folder
// cannot be read; after an error of the sink the live view goes on, because the job does.
func (d *Drainer) Poll(now uint64) error { return d.poll(now, false) }

// Finish drains every ring for the last time, whether or not its process seems to live: the job is over.
func (d *Drainer) Finish(now uint64) error { return d.poll(now, true) }

// Filling reports whether the last poll found a ring that at its pace is overrun in less than a second: then Poll should be
// called more often.
func (d *Drainer) Filling() bool { return d.filling }

func (d *Drainer) poll(now uint64, last bool) error {
	d.filling, d.taken = false, 0
	err := d.discover(now, last)
	d.followAll(now, last)
	for last && d.waiting > 0 && err == nil { // those that waited for a place
		err = d.discover(now, last)
		d.followAll(now, last)
	}
	d.releaseSome()
	return errors.Join(d.sinkErr, err)
}

func (d *Drainer) followAll(now uint64, last bool) {
	names, from := d.names(), d.turn
	d.turn = 0
	for i := range names {
		at := (from + i) % len(names)
		if d.takes > 0 && d.taken >= d.takes && !last {
			d.turn = at
			return
		}
		d.follow(names[at], now, last)
	}
}

// names returns the followed rings in a fixed order: main processes first, so that their loaders are known before the
// workers' batches.
func (d *Drainer) names() []string {
	if d.order == nil {
		d.order = slices.SortedFunc(maps.Keys(d.rings), func(a, b string) int {
			return cmp.Or(cmp.Compare(d.rings[a].rank(), d.rings[b].rank()), cmp.Compare(a, b))
		})
	}
	return d.order
}

// discover reads the folder if it may have changed and starts to follow the rings that are new.
func (d *Drainer) discover(now uint64, last bool) error {
	if d.steady > 1 && d.waiting == 0 && !last {
		return nil
	}
	info, err := os.Stat(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watching spool: %w", err)
	}
	changed := info.ModTime().UnixNano() != d.modTime
	if !changed && !last && d.waiting == 0 && d.scanned != 0 && now-d.scanned < rescanEvery {
		return nil
	}
	d.scanned, d.modTime = now, info.ModTime().UnixNano()
	entries, err := readDir(d.dir)
	if err != nil {
		return fmt.Errorf("watching spool: %w", err)
	}
	d.adopt(append(namesOf(entries), d.below(entries)...))
	d.adoptHeld(entries)
	return nil
}

func namesOf(entries []fs.DirEntry) (names []string) {
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// below lists the rings in the folder that processes of this user make for themselves in a spool that is open to all, as a script may
// have made it (SPEC §4).
func (d *Drainer) below(entries []fs.DirEntry) (names []string) {
	own := ownPrefix + strconv.Itoa(os.Geteuid())
	if !d.options.Below || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == own && e.IsDir() }) {
		return nil
	}
	inside, err := readDir(filepath.Join(d.dir, own))
	if err != nil {
		return nil
	}
	for _, e := range inside {
		names = append(names, filepath.Join(own, e.Name()))
	}
	return names
}

// readDir lists a folder as far as [mostEntries] go: whoever owns it may fill it with millions.
func readDir(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSome(f)
}

// adopt follows the rings among the entries that are neither followed nor done, and forgets those that were removed.
func (d *Drainer) adopt(names []string) {
	there := make(map[string]bool, len(names))
	d.waiting = 0
	var seen []int
	for _, name := range names {
		if pid, ok := seenPID(name); ok {
			seen = append(seen, pid)
		}
		pid, ticks, ok := recording.ParseRingName(filepath.Base(name))
		if !ok {
			continue
		}
		there[name] = true
		switch {
		case d.done[name] || d.rings[name] != nil:
		case len(d.rings) >= d.options.MaxRings:
			d.waiting++
		default:
			d.order = nil
			d.rings[name] = &ring{pid: pid, ticks: ticks, path: filepath.Join(d.dir, name), view: newView()}
		}
	}
	for name := range d.done {
		if !there[name] {
			delete(d.done, name)
		}
	}
	d.counts.Seen = d.thinSeen(seen)
}

// follow polls one ring, and ends it when its process has ended or it turned out to be no ring.
func (d *Drainer) follow(name string, now uint64, last bool) {
	r := d.rings[name]
	err := d.open(r)
	if last {
		r.checked = 0 // look once more
	}
	gone := d.hasEnded(r, now)
	r.outlives = last && !gone
	ended := last || gone
	if !ended && now < r.due {
		return
	}
	if err != nil && ended { // it may have become whole just before its process ended
		err = d.open(r)
	}
	if err == nil {
		err = d.pollRing(r, now, ended)
	}
	switch {
	case err == nil && !ended:
		return
	case err == nil:
		d.counts.Ended++
	case !ended && r.mayRecover(err):
		return
	case errors.Is(err, recording.ErrUnmade): // its process ended first, or the run: nothing was recorded in it
	default:
		d.counts.Bad++
		d.counts.LastBad = err
	}
	d.drop(name, r, err == nil || errors.Is(err, recording.ErrUnmade))
}

// hasEnded reports whether the process has closed its ring or is gone. It is asked before the ring is read, so that a last
// record written just before the end is seen.
func (d *Drainer) hasEnded(r *ring, now uint64) bool {
	if r.header.State == recording.RingClosed || r.replaced {
		return true
	}
	if d.foreign(r) {
		return d.foreignEnded(r, now)
	}
	if r.checked != 0 && now-r.checked < d.options.AliveEvery {
		return false
	}
	r.checked = now
	return !d.options.Alive(r.pid, r.ticks)
}

// drop stops following a ring.
func (d *Drainer) drop(name string, r *ring, whole bool) {
	d.order = nil
	if r.reader != nil {
		r.reader.Close()
	}
	if whole && !r.silent && d.options.Remove && d.sinkErr == nil {
		d.ended = append(d.ended, r.path)
	}
	if sink, ok := d.sink.(recording.Ender); ok && r.id != 0 && d.sinkErr == nil { // whether or not it could be read to its end
		sink.End(r.id)
	}
	d.done[name] = true
	delete(d.rings, name)
}

// Ended returns how many rings wait for [Drainer.RemoveEnded].
func (d *Drainer) Ended() int { return len(d.ended) }

// RemoveEnded deletes the rings that were read to their end. It is called once the sink has their records on disk: until then
// the ring is all that a killed agent leaves of them.
func (d *Drainer) RemoveEnded() {
	for _, path := range d.ended {
		_ = os.Remove(path) // one that cannot be removed is left alone
	}
	d.ended = d.ended[:0]
}

// releaseSome closes files while more are open than may be. Those of workers go first; they are opened again at the next
// poll.
func (d *Drainer) releaseSome() {
	if len(d.rings) <= d.options.MaxOpen {
		return
	}
	for i, name := range d.names() {
		if r := d.rings[name]; r.reader != nil && i >= d.options.MaxOpen {
			r.reader.Release()
		}
	}
}

// Counts returns what was found so far.
func (d *Drainer) Counts() Counts {
	c := d.counts
	c.Waiting = d.waiting
	return c
}

// Close closes the files. The rings stay.
func (d *Drainer) Close() error {
	for _, r := range d.rings {
		if r.reader != nil {
			r.reader.Close()
		}
	}
	return nil
}
