// Package arch holds the program's shape as a test that fails: which package may import which (DESIGN: data flows one way).
package arch

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Imports    []string // direct
	Deps       []string // all
	GoFiles    []string
	CgoFiles   []string
}

// packages lists this module's packages and everything they depend on. cgo is switched on, so that the GPU bindings are
// seen whatever this machine builds with: listing compiles nothing.
func packages(t *testing.T) (own []listed, byPath map[string]listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,Imports,Deps,GoFiles,CgoFiles", module+"/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	byPath = map[string]listed{}
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return own, byPath
		} else if err != nil {
			t.Fatalf("reading what go list says: %v", err)
		}
		byPath[p.ImportPath] = p
		if _, ok := relative(p.ImportPath); ok && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			own = append(own, p)
		}
	}
}

// relative returns a package's name within the module.
func relative(path string) (name string, ok bool) { return strings.CutPrefix(path, module+"/") }

// covers reports whether a pattern names a package.
func covers(pattern, name string) bool {
	prefix, below := strings.CutSuffix(pattern, "...")
	return pattern == name || below && (strings.HasPrefix(name, prefix) || name+"/" == prefix)
}

func coveredBy(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, name) })
}

func ruleOf(name string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return covers(r.packages, name) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

func TestImports(t *testing.T) {
	own, byPath := packages(t)
	if len(own) < 10 {
		t.Fatalf("only %d packages were listed", len(own))
	}
	for _, p := range own {
		name, _ := relative(p.ImportPath)
		r, ok := ruleOf(name)
		if !ok {
			t.Errorf("%s has no rule: say in rules_test.go what it may import", name)
			continue
		}
		for _, complaint := range r.check(p, byPath) {
			t.Errorf("%s %s", name, complaint)
		}
	}
}

// check returns what a package imports and may not.
func (r rule) check(p listed, byPath map[string]listed) (complaints []string) {
	name, _ := relative(p.ImportPath)
	for _, dep := range p.Deps {
		if inside, ok := relative(dep); ok && !coveredBy(r.may, inside) && inside != name {
			complaints = append(complaints, "depends on "+inside+through(p, dep, byPath))
		}
	}
	for _, dep := range p.Imports {
		_, own := relative(dep)
		switch {
		case own || dep == "C" || dep == "unsafe":
		case byPath[dep].Standard:
			if r.std != nil && !slices.Contains(r.std, dep) {
				complaints = append(complaints, "imports "+dep+" of the standard library")
			}
		case !coveredBy(r.foreign, dep) || misplaced(dep, name):
			complaints = append(complaints, "imports "+dep)
		}
	}
	return complaints
}

// misplaced reports whether a package imports a GPU binding that is not its own, cmd included.
func misplaced(dep, name string) bool {
	for pattern, only := range nvidia {
		if covers(pattern, dep) && !slices.Contains(only, name) {
			return true
		}
	}
	return false
}

// through names the direct import by which a package got a dependency.
func through(p listed, dep string, byPath map[string]listed) string {
	if slices.Contains(p.Imports, dep) {
		return ""
	}
	for _, direct := range p.Imports {
		if slices.Contains(byPath[direct].Deps, dep) {
			name, _ := relative(direct)
			return " through " + name
		}
	}
	return ""
}

// clockReaders are the functions of package time that look at a clock or wait for one.
var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// A pure package gets its times from records. Importing time is allowed for its constants and formats.
func TestPurePackagesReadNoClock(t *testing.T) {
	own, _ := packages(t)
	looked := 0
	for _, p := range own {
		name, _ := relative(p.ImportPath)
		if r, ok := ruleOf(name); !ok || r.std == nil {
			continue
		}
		looked++
		for _, file := range p.GoFiles {
			for _, use := range clockUses(t, filepath.Join(p.Dir, file), nil) {
				t.Errorf("%s: %s calls %s", name, file, use)
			}
		}
	}
	if looked < 5 {
		t.Errorf("only %d pure packages were looked at", looked)
	}
}

// clockUses lists the functions of package time that a file uses to look at a clock. src stands for the file's text if it
// is not nil.
func clockUses(t *testing.T, file string, src any) (uses []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	local := ""
	for _, i := range f.Imports {
		if i.Path.Value == `"time"` {
			local = "time"
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && local != "" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local && slices.Contains(clockReaders, s.Sel.Name) {
				uses = append(uses, "time."+s.Sel.Name)
			}
		}
		return true
	})
	return uses
}

// The test itself can fail: each of these must be caught.
func TestRulesCatch(t *testing.T) {
	byPath := map[string]listed{
		"os": {Standard: true}, "fmt": {Standard: true},
		module + "/report": {Imports: []string{module + "/probe/host"}, Deps: []string{module + "/probe/host"}},
	}
	for _, c := range []struct {
		name    string
		imports []string
		deps    []string
		caught  string
	}{
		{"analysis/stat", []string{"os"}, nil, "imports os"},
		{"analysis", []string{module + "/report"}, []string{module + "/report", module + "/probe/host"}, "depends on probe/host through report"},
		{"report/html", nil, []string{module + "/exporters/prometheus"}, "depends on exporters/prometheus"},
		{"probe/recording", nil, []string{module + "/probe/host"}, "depends on probe/host"},
		{"probe/gpu/nvml", []string{"github.com/NVIDIA/go-dcgm/pkg/dcgm"}, nil, "imports github.com/NVIDIA/go-dcgm/pkg/dcgm"},
		{"cmd/datawait", []string{"github.com/NVIDIA/go-nvml/pkg/nvml"}, nil, "imports github.com/NVIDIA/go-nvml/pkg/nvml"},
		{"analysis", []string{"gonum.org/v1/gonum/stat"}, nil, "imports gonum.org/v1/gonum/stat"},
		{"probe/gpu/nvml", []string{"github.com/NVIDIA/go-nvml/pkg/nvml", "fmt"}, []string{module + "/probe/gpu"}, ""},
	} {
		r, _ := ruleOf(c.name)
		complaints := strings.Join(r.check(listed{ImportPath: module + "/" + c.name, Imports: c.imports, Deps: c.deps}, byPath), "; ")
		if c.caught == "" && complaints != "" || !strings.Contains(complaints, c.caught) {
			t.Errorf("%s: %q, want %q", c.name, complaints, c.caught)
		}
	}
	if _, ok := ruleOf("probe/util"); ok {
		t.Error("a package nobody listed has a rule")
	}
	if uses := clockUses(t, "x.go", "package x\nimport clock \"time\"\nvar now = clock.Now\nvar d = clock.Second"); !slices.Equal(uses, []string{"time.Now"}) {
		t.Errorf("uses of the clock: %v", uses)
	}
}
