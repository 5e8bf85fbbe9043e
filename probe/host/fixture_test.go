package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// fixture is a machine made of files, with a clock that stands still until it is moved.
type fixture struct {
	t    *testing.T
	root string
	fs   FS
	at   uint64
	job  []Known
	memo *recording.Memory
	host *Host
}

func newFixture(t *testing.T, table SocketTable) *fixture {
	t.Helper()
	root := t.TempDir()
	f := &fixture{t: t, root: root, at: 1e9,
		fs: FS{Proc: root + "/proc", Sys: root + "/sys", Cgroup: root + "/sys/fs/cgroup"}}
	f.write("proc/stat", "cpu 100 0 50 1000 5 0 0 0 0 0\ncpu0 1 0 0 0\ncpu1 1 0 0 0\nprocs_running 3\n")
	f.write("proc/meminfo", "MemTotal:        4096 kB\nMemAvailable:    1024 kB\n")
	f.write("proc/sys/kernel/osrelease", "6.1.0-test\n")
	f.write("proc/self/mountinfo", "")
	f.memo = recording.NewMemory(recording.Manifest{})
	id, err := f.memo.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	if err != nil {
		t.Fatal(err)
	}
	f.host = New(recording.NewAppender(f.memo, id), Options{FS: f.fs, Self: 1,
		Sockets: func() (SocketTable, error) { return table, noTable(table) },
		Now:     func() uint64 { return f.at }, Job: func() []Known { return f.job }})
	t.Cleanup(func() { f.host.Close() })
	return f
}

func noTable(t SocketTable) error {
	if t == nil {
		return fmt.Errorf("%w: no table in this test", errors.ErrUnsupported)
	}
	return nil
}

// write makes a file, with its folders; the path is relative to the fixture.
func (f *fixture) write(path, text string) {
	f.t.Helper()
	full := filepath.Join(f.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) remove(path string) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.root, path)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) link(path, target string) {
	f.t.Helper()
	full := filepath.Join(f.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Symlink(target, full); err != nil {
		f.t.Fatal(err)
	}
}

// proc is one process of a fixture.
type proc struct {
	pid, ppid, group int
	start            uint64
	comm             string
	state            string // "S" if empty
	user, system     uint64 // ticks
	reaped           uint64 // ticks
	threads, pages   uint64
	read             uint64 // bytes
	waited           []uint64
	cpus             string
	cgroup           string
}

func (f *fixture) process(p proc) {
	f.t.Helper()
	dir := fmt.Sprintf("proc/%d/", p.pid)
	if p.state == "" {
		p.state = "S"
	}
	f.write(dir+"stat", fmt.Sprintf("%d (%s) %s %d %d 7 0 -1 4194304 10 0 0 0 %d %d %d 0 20 0 %d 0 %d 9999 %d 18446744073709551615 1 1\n",
		p.pid, p.comm, p.state, p.ppid, p.group, p.user, p.system, p.reaped, p.threads, p.start, p.pages))
	f.write(dir+"io", fmt.Sprintf("rchar: 5\nwchar: 6\nread_bytes: %d\nwrite_bytes: 0\n", p.read))
	f.write(dir+"status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t"+p.cpus+"\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t8\n")
	for i, w := range p.waited {
		f.write(fmt.Sprintf("%stask/%d/schedstat", dir, p.pid+i), fmt.Sprintf("123 %d 5\n", w))
	}
	if p.cgroup != "" {
		f.write(dir+"cgroup", p.cgroup)
	}
	f.write(dir+"fd/0", "")
}

// run takes one sample of the part of a name; the clock moves by a second before it.
func (f *fixture) run(names ...string) {
	f.t.Helper()
	f.at += 1e9
	for _, name := range names {
		if err := f.try(name); err != nil {
			f.t.Fatalf("%s: %v", name, err)
		}
	}
}

func (f *fixture) try(name string) error {
	f.t.Helper()
	for _, p := range f.host.Parts() {
		if p.Name == "host/"+name {
			return p.Run(f.t.Context(), f.at)
		}
	}
	f.t.Fatalf("there is no part %s", name)
	return nil
}

// records returns all records of a kind.
func (f *fixture) records(kind recording.Kind) (found []recording.Record) {
	f.t.Helper()
	if err := f.memo.Scan(func(_ recording.StreamID, records []recording.Record) error {
		for _, r := range records {
			if r.Kind() == kind {
				found = append(found, r)
			}
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
	return found
}

// last returns the last record of a kind.
func (f *fixture) last(kind recording.Kind) *recording.Record {
	f.t.Helper()
	found := f.records(kind)
	if len(found) == 0 {
		f.t.Fatalf("no %v record", kind)
	}
	return &found[len(found)-1]
}

// why returns the reason the host keeps for what is not known.
func (f *fixture) why(what string) string { return f.host.note.Why[what] }

func near(got, want float32) bool {
	return got == want || got-want < 1e-5*want && want-got < 1e-5*want
}

func isNaN(v float32) bool { return v != v }

func contains(text, part string) bool { return strings.Contains(text, part) }
