package hook

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func names(t *testing.T, files fs.FS) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// The package is whatever Python files lie in datawait/: none is left out of the binary, nothing else is taken along.
func TestEmbedsEveryFileOfThePackage(t *testing.T) {
	want := []string{"attach/sitecustomize.py"}
	sources, err := filepath.Glob("datawait/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, ".py") {
			want = append(want, filepath.ToSlash(name))
		} else if base := filepath.Base(name); base != "__pycache__" && !strings.HasPrefix(base, ".") {
			t.Errorf("%s is neither embedded nor expected", name)
		}
	}
	slices.Sort(want)
	if got := names(t, Files()); !slices.Equal(got, want) {
		t.Errorf("embedded %v\nwant %v", got, want)
	}
}

func TestExtractedFolderIsPrivateAndAttaches(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hook")
	if err := Extract(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode %o, want 700", got)
	}
	var want []string
	for _, name := range names(t, Files()) {
		want = append(want, strings.TrimPrefix(name, "attach/"))
	}
	slices.Sort(want)
	if got := names(t, os.DirFS(dir)); !slices.Equal(got, want) {
		t.Errorf("extracted %v\nwant %v", got, want)
	}

	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	spool := t.TempDir()
	command := exec.Command(python, "-c", "import datawait.arming as a; print(a.armed, a.__file__)")
	command.Env = []string{"PYTHONPATH=" + dir, "DATAWAIT_SPOOL=" + spool, "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	out, err := command.CombinedOutput()
	if want := "True " + filepath.Join(dir, "datawait", "arming.py") + "\n"; err != nil || string(out) != want {
		t.Errorf("python said %q (%v), want %q", out, err, want)
	}
	if seen, _ := filepath.Glob(filepath.Join(spool, "seen-*")); len(seen) != 1 {
		t.Errorf("seen files: %v", seen)
	}
}

// The wheel and the binary carry the same files.
func TestWheelHoldsTheSameFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a wheel")
	}
	python := os.Getenv("DATAWAIT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import setuptools, wheel, pip").Run() != nil {
		t.Skipf("%s has no setuptools, wheel and pip", python)
	}
	source, dist := t.TempDir(), t.TempDir()
	for _, name := range []string{"pyproject.toml", "datawait", "attach"} {
		if out, err := exec.Command("cp", "-r", name, source).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	build := exec.Command(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", dist, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the wheel: %v\n%s", err, out)
	}
	wheels, _ := filepath.Glob(filepath.Join(dist, "*.whl"))
	if len(wheels) != 1 {
		t.Fatalf("wheels: %v", wheels)
	}
	archive, err := zip.OpenReader(wheels[0])
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var got []string
	for _, file := range archive.File {
		if !strings.Contains(file.Name, ".dist-info/") {
			got = append(got, strings.TrimPrefix(file.Name, "datawait/attach/"))
		}
	}
	var want []string
	for _, name := range names(t, Files()) {
		want = append(want, strings.TrimPrefix(name, "attach/"))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("wheel %v\nembedded %v", got, want)
	}
}
