package traps

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named finds what a cell of the last column points to.
var named = regexp.MustCompile("`([^`]+)`")

// Every row of README.md names tests that exist, and every test here stands in a row.
func TestTheListNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	here := testsHere(t)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.HasPrefix(line, "| ") || strings.Contains(cells[0], "the trap") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(cells[3], -1)
		if len(names) == 0 {
			t.Errorf("nothing holds %q", cells[0])
		}
		for _, n := range names {
			if _, ok := here[n[1]]; ok {
				here[n[1]] = true
			} else if !exists(n[1]) {
				t.Errorf("%q is held by %s, which does not exist", cells[0], n[1])
			}
		}
	}
	if rows < 14 {
		t.Errorf("only %d rows were read", rows)
	}
	for name, listed := range here {
		if !listed && name != t.Name() && name != "TestMain" {
			t.Errorf("%s stands in no row", name)
		}
	}
}

// testsHere are the tests of this folder, not listed so far.
func testsHere(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files, _ := filepath.Glob("*_test.go")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = false
		}
	}
	return found
}

// exists looks up "file" or "file::test", from the root of the repository.
func exists(name string) bool {
	file, test, _ := strings.Cut(name, "::")
	text, err := os.ReadFile(filepath.Join("../..", file))
	return err == nil && (test == "" || regexp.MustCompile(`(?m)^(def|func) `+regexp.QuoteMeta(test)+`\(`).Match(text))
}
