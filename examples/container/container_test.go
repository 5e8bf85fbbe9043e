// Package container holds the image's recipe against the Makefile: nothing here can build an image.
package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// top is the repository.
const top = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// instructions are the recipe's lines that begin with this word, without it.
func instructions(t *testing.T, word string) (found []string) {
	t.Helper()
	for line := range strings.Lines(read(t, "Containerfile")) {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}

// The image is built as `make build` builds: what make would run, it runs.
func TestTheImageIsBuiltAsTheMakefileBuilds(t *testing.T) {
	make := exec.Command("make", "-s", "-n", "build", "GO=go", "PYTHON=python3")
	make.Dir = top
	make.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=") // a make that runs this test hands its own on
	out, err := make.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	commands := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(commands) < 2 || !strings.Contains(commands[0], "./cmd/datawait") {
		t.Fatalf("make would run %q", commands)
	}
	runs := instructions(t, "RUN")
	if i := slices.Index(runs, commands[0]); i < 0 || !slices.Equal(runs[i:], commands) {
		t.Errorf("the image runs %q, and make %q", runs, commands)
	}

	var flags []string
	for _, set := range regexp.MustCompile(`(?m)^export (CGO_\w+) = (.*)$`).FindAllStringSubmatch(read(t, filepath.Join(top, "Makefile")), -1) {
		flags = append(flags, set[1]+"="+set[2])
	}
	if got := strings.Join(instructions(t, "ENV"), " "); got != strings.Join(flags, " ") || len(flags) < 2 {
		t.Errorf("the image has %q, and make %q", got, flags)
	}
}

// Every folder that the program is made of is copied, and there.
func TestTheImageCopiesWhatTheProgramIsMadeOf(t *testing.T) {
	copied := map[string]bool{}
	for _, line := range instructions(t, "COPY") {
		if words := strings.Fields(line); !strings.HasPrefix(line, "--from") {
			for _, source := range words[:len(words)-1] {
				copied[source] = true
				if _, err := os.Stat(filepath.Join(top, source)); err != nil {
					t.Errorf("it copies %s: %v", source, err)
				}
			}
		}
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}", "./cmd/datawait")
	list.Dir = top
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 20 {
		t.Fatalf("the program is made of %v", packages)
	}
	for _, path := range packages {
		if folder := strings.Split(path, "/")[3]; !copied[folder] {
			t.Errorf("it does not copy %s, of which %s is a part", folder, path)
		}
	}
}

// The build stage has the language that go.mod asks for, and what is built there runs in the last stage: both are of one Debian.
func TestTheStagesFitTogether(t *testing.T) {
	args := strings.Join(instructions(t, "ARG"), " ")
	stages := regexp.MustCompile(`^GO=golang:([\d.]+)-(\w+) RUNTIME=debian:(\w+)-slim$`).FindStringSubmatch(args)
	if stages == nil || stages[2] != stages[3] {
		t.Fatalf("stages %s", args)
	}
	if want := "\ngo " + stages[1] + "."; !strings.Contains(read(t, filepath.Join(top, "go.mod")), want) {
		t.Errorf("the image builds with Go %s, and go.mod asks for another", stages[1])
	}
}

func TestTheImageIsNobodys(t *testing.T) {
	if user := instructions(t, "USER"); !slices.Equal(user, []string{"65532:65532"}) {
		t.Errorf("it runs as %v", user)
	}
}
