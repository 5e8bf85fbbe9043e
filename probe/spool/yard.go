package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/datawait/datawait/probe/recording"
)

// Folder is one spool folder of a [Yard].
type Folder struct {
	Path string // below the yard, "." for the yard itself
	Job  string // the first element of Path, "" where a process put its rings into the yard itself
	UID  int    // who owns it
}

// YardOptions say what a Yard does. The zero value is the default.
type YardOptions struct {
	// Sink returns where the records of a folder go, or says that it is not known yet: then the folder is asked about again, and its
	// rings wait.
	Sink func(Folder) (sink recording.Sink, known bool)
	// Gone reports whether the job that a folder was made for is certainly over. An empty folder of such a job is removed. nil = never.
	Gone func(Folder) bool

	MaxFolders int // followed at once; 0 = 4096
	OfOneUser  int // folders of one user, root apart; 0 = 256
	MaxRings   int // of one folder; 0 = 1024
	UserRings  int // of one user, or of one job where root made the folder; 0 = 4096
	UserTakes  int // records looked at in one poll, of one user or job; 0 = 2^20
	Remove     bool
}

// Yard follows the spool folders of any number of jobs: those that lie in one folder, and one level below. It is for one goroutine.
//
//	/run/datawait/spool/                      1777
//	    uid-1000/ring-4711-88123.dwr          a process of that user, on a bare machine
//	    42/ring-4712-88200.dwr                a Slurm job, whose prolog made the folder
//	    1f0c9…-pod-uid/uid-1000/ring-7-90001.dwr a pod, whose mount is the folder
//
// What lies there was put there by somebody else. Links are followed nowhere, a folder is held open while it is followed, so nobody can
// put another in its place, and every user has a share of the places that there are.
type Yard struct {
	root    *os.Root
	options YardOptions
	places  map[string]*place
	denied  map[string]error // folders that are not followed, and why
	shares  map[int]int      // folders that are followed, by user
	census  *census
	turn    int    // where the next poll begins
	scanned uint64 // ns; 0 = never
}

// place is a folder that is followed.
type place struct {
	Folder
	file    *os.File // the folder itself; names below it are opened through /proc/self/fd (proc_pid_fd(5))
	info    os.FileInfo
	drainer *Drainer
	below   bool // a user has a folder in it
}

// OpenYard opens a yard, which must exist.
func OpenYard(dir string, o YardOptions) (*Yard, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the spool: %w", err)
	}
	o.MaxFolders = cmp.Or(o.MaxFolders, 4096)
	o.OfOneUser = cmp.Or(o.OfOneUser, 256)
	o.MaxRings = cmp.Or(o.MaxRings, 1024)
	o.UserRings = cmp.Or(o.UserRings, 4096)
	o.UserTakes = cmp.Or(o.UserTakes, 1<<20)
	return &Yard{root: root, options: o, places: map[string]*place{}, denied: map[string]error{}, shares: map[int]int{}, census: &census{}}, nil
}

// Poll takes everything new out of every folder. now is CLOCK_MONOTONIC in ns.
func (y *Yard) Poll(now uint64) error {
	var err error
	if y.scanned == 0 || now-y.scanned >= rescanEvery {
		y.scanned = now
		err = y.scan()
	}
	return errors.Join(err, y.drain(now))
}

// owner is who shares what there is for one: a user, or a job where root made the folder.
type owner struct {
	uid int
	job string
}

func (p *place) owner() owner {
	if p.UID == 0 {
		return owner{job: p.Job}
	}
	return owner{uid: p.UID}
}

// drain polls every folder. What one owner's rings may cost at a time is bounded, and every poll begins at another folder: so those
// that got no turn get one at the next.
func (y *Yard) drain(now uint64) (err error) {
	names := y.names()
	rings, takes := map[owner]int{}, map[owner]int{}
	for _, p := range y.places {
		rings[p.owner()] += len(p.drainer.rings)
	}
	y.turn++
	for i := range names {
		p := y.places[names[(i+y.turn)%len(names)]]
		d, of := p.drainer, p.owner()
		before := len(d.rings)
		d.options.MaxRings = min(y.options.MaxRings, before+max(0, y.options.UserRings-rings[of]))
		d.takes = max(1, y.options.UserTakes-takes[of])
		err = errors.Join(err, d.Poll(now))
		rings[of] += len(d.rings) - before
		takes[of] += d.taken
	}
	return err
}

// Filling reports whether some ring will be overrun soon, as [Drainer.Filling] does.
func (y *Yard) Filling() bool {
	for _, p := range y.places {
		if p.drainer.Filling() {
			return true
		}
	}
	return false
}

func (y *Yard) names() []string { return slices.Sorted(maps.Keys(y.places)) }

// scan finds folders that are new, and lets go of those that are no more.
func (y *Yard) scan() error {
	f, err := y.root.Open(".")
	if err != nil {
		return fmt.Errorf("reading the spool: %w", err)
	}
	defer f.Close()
	clear(y.denied)
	there := map[string]bool{}
	y.visit(".", there)
	entries, err := readSome(f)
	for _, e := range entries {
		if !e.IsDir() { // of a link it is the link's own type
			continue
		}
		y.visit(e.Name(), there)
		y.below(e.Name(), there)
	}
	for name, p := range y.places {
		if !there[name] && p.idle() {
			y.leave(name)
		}
	}
	if err != nil {
		return fmt.Errorf("reading the spool: %w", err)
	}
	return nil
}

// below visits the folders that processes made for themselves in the folder of a job.
func (y *Yard) below(name string, there map[string]bool) {
	p := y.places[name]
	if strings.HasPrefix(name, ownPrefix) || p == nil {
		return
	}
	if p.drainer.steady > 1 && !p.below { // nothing was made there or taken away
		y.clear(name)
		return
	}
	f, err := y.root.Open(name)
	if err != nil {
		return // denied already
	}
	defer f.Close()
	entries, _ := readSome(f) // what cannot be read is said by its own visit
	own := 0
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), ownPrefix) {
			own++
			y.visit(path.Join(name, e.Name()), there)
		}
	}
	if p.below = own > 0; !p.below {
		y.clear(name)
	}
}

// ownPrefix begins the name of a folder that the hook makes for one user in a folder that is open to all (SPEC §4).
const ownPrefix = "uid-"

// mostEntries of one folder are read at a time.
const mostEntries = 1 << 16

func readSome(f *os.File) ([]fs.DirEntry, error) {
	entries, err := f.ReadDir(mostEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// visit follows a folder, unless it is followed already.
func (y *Yard) visit(name string, there map[string]bool) {
	info, err := y.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	if p := y.places[name]; p != nil {
		if there[name] = os.SameFile(p.info, info); there[name] || !p.idle() {
			p.look(info)
			return
		}
		y.leave(name)
	}
	if err := y.follow(name, info); err != nil {
		y.denied[name] = err
		return
	}
	there[name] = true
}

// lookEvery is how often, in ns, an agent that is left running looks whether processes live: it costs three system calls, more than
// all else that is done to a ring. A process that ends by itself closes its ring, which is seen at once.
const lookEvery = 4e9

var errCrowded = errors.New("too many folders at once")

func (y *Yard) follow(name string, info os.FileInfo) error {
	folder := Folder{Path: name, UID: ownerOf(info)}
	if name != "." {
		folder.Job, _, _ = strings.Cut(name, "/")
	}
	if strings.HasPrefix(folder.Job, ownPrefix) {
		folder.Job = ""
	}
	if len(y.places) >= y.options.MaxFolders || // the superuser's are those that a kubelet or a prolog made for others
		folder.UID != 0 && y.shares[folder.UID] >= y.options.OfOneUser {
		return errCrowded
	}
	sink, known := y.options.Sink(folder)
	if !known {
		return nil
	}
	f, err := y.open(name, info)
	if err != nil {
		return err
	}
	dir := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	y.shares[folder.UID]++
	y.places[name] = &place{Folder: folder, file: f, info: info,
		drainer: Watch(dir, sink, Options{MaxRings: y.options.MaxRings, MaxOpen: 64, MaxCapacity: recording.MainCapacity, Remove: y.options.Remove, Silent: silentFor,
			AliveEvery: lookEvery})}
	y.places[name].drainer.census = y.census
	return nil
}

// open opens the very folder that was looked at: os.Root keeps links within the yard, and here none is followed.
func (y *Yard) open(name string, info os.FileInfo) (*os.File, error) {
	f, err := y.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(opened, info) {
		err = errors.New("another folder took its place")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// look notes whether the folder has stood still. What a folder holds changes the time at which it changed, but two changes at one tick of the
// clock look like one: only a folder that looks the same at two scans in a row is not read again.
func (p *place) look(info os.FileInfo) {
	if p.info.ModTime().Equal(info.ModTime()) && os.SameFile(p.info, info) {
		p.drainer.steady++
		return
	}
	p.drainer.steady = 0
	if os.SameFile(p.info, info) {
		p.info = info
	}
}

// leave stops following a folder.
func (y *Yard) leave(name string) {
	p := y.places[name]
	p.close()
	delete(y.places, name)
	if y.shares[p.UID]--; y.shares[p.UID] == 0 {
		delete(y.shares, p.UID)
	}
}

func ownerOf(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// clear removes an empty folder of a job that is over.
func (y *Yard) clear(name string) {
	p := y.places[name]
	if p == nil || !y.options.Remove || y.options.Gone == nil || !p.idle() || !y.options.Gone(p.Folder) {
		return
	}
	if y.root.Remove(name) == nil { // which fails on a folder that is not empty
		y.leave(name)
	}
}

// idle reports whether no ring is followed in the folder.
func (p *place) idle() bool { return len(p.drainer.rings) == 0 && p.drainer.Ended() == 0 }

func (p *place) close() {
	p.drainer.Close()
	p.file.Close()
}

// Live returns the training processes of all folders.
func (y *Yard) Live() (live []Process) {
	for _, name := range y.names() {
		live = append(live, y.places[name].drainer.Live()...)
	}
	return live
}

// RemoveEnded deletes the rings that were read to their end, as [Drainer.RemoveEnded] does.
func (y *Yard) RemoveEnded() {
	for _, p := range y.places {
		p.drainer.RemoveEnded()
	}
}

// YardCounts says what a Yard found.
type YardCounts struct {
	Folders  int   // followed
	Refused  int   // folders that are not followed
	Followed int   // rings
	Waiting  int   // rings for which there is no place yet
	Bad      int   // rings that could not be read
	Why      error // why the last refused folder was, or the last bad ring
}

// Counts returns what was found so far.
func (y *Yard) Counts() (c YardCounts) {
	c.Folders, c.Refused = len(y.places), len(y.denied)
	for _, name := range slices.Sorted(maps.Keys(y.denied)) {
		c.Why = fmt.Errorf("%s: %w", recording.Name(name), y.denied[name])
	}
	for _, name := range y.names() {
		d := y.places[name].drainer
		counts := d.Counts()
		c.Followed += len(d.rings)
		c.Waiting += counts.Waiting
		c.Bad += counts.Bad
		if counts.LastBad != nil && c.Why == nil {
			c.Why = counts.LastBad
		}
	}
	return c
}

// Close lets go of all folders. The rings stay.
func (y *Yard) Close() error {
	for _, p := range y.places {
		p.close()
	}
	return y.root.Close()
}
