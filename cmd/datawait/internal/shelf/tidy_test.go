package shelf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
)

// aWeek is when these tests are; recordings lie before it.
var aWeek = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// put lays a recording of a job onto a shelf, as one that ended so long ago.
func put(t testing.TB, dir, job string, ago time.Duration, bytes int) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	of := filepath.Join(dir, folderOf(live.Tenant{Job: job}))
	ok(describe(of, live.Tenant{Job: job}))
	ended := aWeek.Add(-ago)
	slice := filepath.Join(of, ended.Add(-time.Minute).Format(sliceForm))
	ok(os.Mkdir(slice, 0o700))
	file := filepath.Join(slice, "segment")
	ok(os.WriteFile(file, make([]byte, bytes), 0o600))
	ok(os.Chtimes(file, ended, ended))
}

// shelved lists what is there: jobs, and of each how many slices.
func shelved(t *testing.T, dir string) (all []string) {
	t.Helper()
	jobs, err := Jobs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		all = append(all, fmt.Sprint(j, ":", len(j.Slices)))
	}
	return all
}

func TestTidying(t *testing.T) {
	type recorded struct {
		job   string
		ago   time.Duration
		bytes int
	}
	for _, c := range []struct {
		name    string
		options Options
		there   []recorded
		want    []string
	}{
		{"nothing is too much", Options{}, []recorded{{"a", time.Hour, 100}, {"b", 2 * time.Hour, 100}}, []string{"a:1", "b:1"}},
		{"of a job the newest is kept", Options{Keep: 250}, []recorded{{"a", time.Hour, 100}, {"a", 2 * time.Hour, 100}, {"a", 3 * time.Hour, 100}}, []string{"a:2"}},
		{"a single one is kept though it is large", Options{Keep: 50}, []recorded{{"a", time.Hour, 100}}, []string{"a:1"}},
		{"of all the oldest goes", Options{All: 250}, []recorded{{"a", time.Hour, 100}, {"b", 3 * time.Hour, 100}, {"c", 2 * time.Hour, 100}}, []string{"a:1", "c:1"}},
		{"a job of long ago goes", Options{}, []recorded{{"a", time.Hour, 100}, {"b", 8 * 24 * time.Hour, 100}}, []string{"a:1"}},
		{"of many jobs those go that ended first", Options{Jobs: 2}, []recorded{{"a", time.Hour, 1}, {"b", 3 * time.Hour, 1}, {"c", 2 * time.Hour, 1}}, []string{"a:1", "c:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Dir = t.TempDir()
			for _, r := range c.there {
				put(t, c.options.Dir, r.job, r.ago, r.bytes)
			}
			s := New(c.options, nil)
			for range 3 { // what is remembered of quiet jobs changes nothing
				if err := s.tidy(aWeek); err != nil {
					t.Fatal(err)
				}
			}
			if got := shelved(t, c.options.Dir); !slices.Equal(got, c.want) {
				t.Errorf("there is %v, not %v", got, c.want)
			}
		})
	}
}

// TestTidyingSeesWhatCame: a job that was quiet and writes again is looked at anew.
func TestTidyingSeesWhatCame(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), Keep: 250}, nil)
	for hours := 5; hours > 0; hours-- {
		put(t, s.options.Dir, "a", time.Duration(hours)*time.Hour, 100)
		if err := s.tidy(aWeek); err != nil {
			t.Fatal(err)
		}
		if got, want := shelved(t, s.options.Dir), []string{fmt.Sprint("a:", min(2, 6-hours))}; !slices.Equal(got, want) {
			t.Errorf("there is %v, not %v", got, want)
		}
	}
}

// BenchmarkTidying is what an agent does each minute with the recordings of a week of short jobs.
func BenchmarkTidying(b *testing.B) {
	s := New(Options{Dir: b.TempDir()}, nil)
	for i := range s.options.Jobs {
		put(b, s.options.Dir, fmt.Sprint("job-", i), time.Hour, 100)
	}
	for b.Loop() {
		if err := s.tidy(aWeek); err != nil {
			b.Fatal(err)
		}
	}
}
