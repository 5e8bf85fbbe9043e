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

// ErrExists means that the output folder holds something already.
var ErrExists = errors.New("folder is not empty")

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

// Create makes the output folder for this host. One that exists must be empty or hold only other hosts' parts of the
// same run, else it is [ErrExists]; with force, what an earlier run of datawait left in it is removed.
func Create(dir, host string, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making output folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading output folder: %w", err)
	}
	own := recording.NodeFolder(host)
	taken := ""
	for _, e := range entries {
		if e.Name() == own || !strings.HasPrefix(e.Name(), "node-") {
			taken = e.Name()
			break
		}
	}
	if taken == "" {
		return nil
	}
	if !force {
		return fmt.Errorf("output folder %s holds %s: %w", dir, taken, ErrExists)
	}
	return Clear(dir, own)
}

// Fresh returns dir, or dir-2, dir-3 … if that exists already: for a name that datawait chose itself.
func Fresh(dir string) string {
	name := dir
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
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
