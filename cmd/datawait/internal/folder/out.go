// Package folder decides where a run leaves its files: the output folder, which stays, and the run folder, which holds
// rings and hook while the job lives.
//
// It never removes or replaces a file that datawait did not write: only names it knows to be its own.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// What is wrong with an output folder.
var (
	ErrExists = errors.New("folder is not empty")
	ErrInUse  = errors.New("another run is writing to it")
)

// Name returns the default name of an output folder: datawait-train-20261130-0712 for `python3 train.py`.
func Name(argv []string, now time.Time) string {
	return "datawait-" + JobName(argv) + "-" + now.Format("20060102-1504")
}

// JobName returns what people call the job: the script's name, the module after -m, else the command's.
func JobName(argv []string) string {
	for i, a := range argv {
		if i > 0 && strings.HasSuffix(a, ".py") {
			return safe(strings.TrimSuffix(filepath.Base(a), ".py"))
		}
		if a == "-m" && i+1 < len(argv) && !isLauncher(argv[i+1]) {
			return safe(argv[i+1])
		}
	}
	return safe(strings.TrimSuffix(filepath.Base(argv[0]), ".py"))
}

// isLauncher reports whether a module only starts the script that comes after it.
func isLauncher(module string) bool {
	switch module {
	case "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch":
		return true
	}
	return false
}

// safe keeps what is harmless in a file name everywhere.
func safe(name string) string {
	clean := strings.Map(func(c rune) rune {
		if c == '.' || c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '-'
	}, name)
	if clean = strings.Trim(clean, ".-"); clean == "" {
		return "job"
	}
	return clean
}

// Out is the output folder of one run. While it is held, no other run writes into this host's part of it.
type Out struct {
	Dir  string
	held *os.File // this host's part, locked; nil where its file system knows no locks
}

// Create makes the output folder for this host. One that exists must be empty or hold only other hosts' parts of the
// same run, else it is [ErrExists]; with force, what an earlier run of datawait left in it is removed, but never from under
// one that still runs ([ErrInUse]). Of several that begin at once with the same folder one gets it.
func Create(dir, host string, force bool) (*Out, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making output folder: %w", err)
	}
	defer closeFile(lockSoon(dir))
	own := recording.NodeFolder(host)
	part := filepath.Join(dir, own)
	taken, err := takenBy(dir, own)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading output folder: %w", err)
	case taken == "":
	case isLocked(part):
		return nil, fmt.Errorf("output folder %s: %w", dir, ErrInUse)
	case !force:
		return nil, fmt.Errorf("output folder %s holds %s: %w", dir, taken, ErrExists)
	default:
		if err := Clear(dir, own); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(part, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("output folder %s: %w", dir, ErrInUse)
	} else if err != nil {
		return nil, fmt.Errorf("making output folder: %w", err)
	}
	held, _ := lock(part)
	return &Out{dir, held}, nil
}

// Release lets other runs have the folder.
func (o *Out) Release() { closeFile(o.held) }

// takenBy returns what in dir is in the way of a new run of this host, "" if nothing is.
func takenBy(dir, own string) (string, error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() == own || !strings.HasPrefix(e.Name(), "node-") {
			return e.Name(), nil
		}
	}
	return "", err
}

// MakeFresh makes dir, or dir-2, dir-3 … if that exists already: for a name that datawait chose itself. Of several that begin
// at once each gets its own.
func MakeFresh(dir string) (string, error) {
	name := dir
	for n := 2; ; n++ {
		err := os.Mkdir(name, 0o755)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("making output folder: %w", err)
		}
		name = fmt.Sprintf("%s-%d", dir, n)
	}
}

// own are the files that datawait writes into an output folder and into a node's part of it.
var (
	ownReports = []string{"report.html", "report.md", "report.json", ".report-*"}
	ownNode    = []string{"manifest.json", ".manifest-*", "segment-*.dws"}
)

// Clear removes the reports and this host's part of an earlier run. What datawait did not write stays, and if the
// recording cannot lie beside it, that is an error.
func Clear(dir, node string) error {
	if err := removeMatching(dir, ownReports); err != nil {
		return err
	}
	part := filepath.Join(dir, node)
	if err := removeMatching(part, ownNode); err != nil {
		return err
	}
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clearing output folder: %s holds files that are not datawait's: %w", part, ErrExists)
	}
	return nil
}

// removeMatching removes the regular files in dir with names of these patterns.
func removeMatching(dir string, patterns []string) error {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(escape(dir), pattern))
		if err != nil {
			return fmt.Errorf("clearing %s: %w", dir, err)
		}
		for _, path := range paths {
			info, err := os.Lstat(path)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("clearing %s: %w", dir, err)
			}
		}
	}
	return nil
}

// escape makes a path match only itself in a pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
