package trackrecord

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/datawait/datawait/analysis/track"
)

func entry(key string) track.Entry {
	return track.Entry{Schema: track.Schema, Key: key, Fix: "more-workers", Metric: "step_seconds", Predicted: 1, Low: 0.8, High: 1.2, Measured: 1}
}

func TestWhatIsKeptIsReadAgain(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "state", "datawait", "x.jsonl")}
	for range 2 { // the second time nothing is new
		if err := f.Keep([]track.Entry{entry("a"), entry("b")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Keep([]track.Entry{entry("c")}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.path)
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("%v\n%s", err, text)
	}
	if q := f.Quote(false); q == nil || q.Checked != 3 || f.Quote(true) != nil {
		t.Errorf("%+v", q)
	}
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}

// A line whose writer was killed ends at the next one's beginning, and costs itself alone.
func TestATornLineCostsItselfAlone(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "x.jsonl")}
	if err := f.Keep([]track.Entry{entry("a")}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.path)
	if err == nil {
		err = os.WriteFile(f.path, append(text, text[:50]...), 0o600)
	}
	if err == nil {
		err = f.Keep([]track.Entry{entry("b")})
	}
	if err != nil {
		t.Fatal(err)
	}
	if q := f.Quote(false); q == nil || q.Checked != 2 {
		t.Errorf("%+v", q)
	}
}

func TestWritersAtOnceLoseNothing(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "x.jsonl")}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 10 {
				if err := f.Keep([]track.Entry{entry(fmt.Sprintf("%d-%d", w, i))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	entries, err := f.Read()
	if err != nil || len(entries) != 80 {
		t.Errorf("%d of 80 lines, %v", len(entries), err)
	}
}

// Whatever lies where the file should be, nothing hangs, nothing is harmed, and the error says so.
func TestWhatIsNoFileIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, pipe, "/dev/null", filepath.Join(pipe, "x"), "/proc/datawait/x.jsonl"} {
		f := File{path}
		if err := f.Keep([]track.Entry{entry("a")}); err == nil {
			t.Errorf("%s was written to", path)
		}
		if q := f.Quote(false); q != nil {
			t.Errorf("%s: %+v", path, q)
		}
	}
}

// Of a very long file the end is read, and the line that is cut at its beginning costs itself alone.
func TestOfALongFileTheEndIsRead(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "x.jsonl")}
	if err := os.WriteFile(f.path, []byte(strings.Repeat(strings.Repeat("x", 99)+"\n", most/100+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep([]track.Entry{entry("a")}); err != nil {
		t.Fatal(err)
	}
	if q := f.Quote(false); q == nil || q.Checked != 1 {
		t.Errorf("%+v", q)
	}
}

func TestWhereTheFileLies(t *testing.T) {
	for _, c := range []struct{ name, state, home, want string }{
		{"", "/s", "/h", "/s/datawait/track-record.jsonl"}, {"", "", "/h", "/h/.local/state/datawait/track-record.jsonl"}, {"", "here", "/h", "/h/.local/state/datawait/track-record.jsonl"},
		{"", "", "", ""}, {Off, "/s", "/h", ""}, {"mine.jsonl", "/s", "/h", "mine.jsonl"},
	} {
		env := map[string]string{"XDG_STATE_HOME": c.state, "HOME": c.home}
		if got := At(c.name, func(k string) string { return env[k] }).Path(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if err := (File{}).Keep([]track.Entry{entry("a")}); err != nil {
		t.Error(err)
	}
}
