package alloc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// mapping is a folder in which a job's prolog and epilog keep who has which GPU: a file for each GPU, called by its number, or for each
// GPU instance, "<gpu>.<gi>", with the id of a job on every line (dcgm-exporter, --hpc-job-mapping-dir,
// internal/pkg/transformation/hpc.go). An empty file is a GPU without a job.
type mapping struct {
	folder  string
	numbers numbering
	gpus    []recording.GPUNote
}

const (
	maxFiles = 4096 // entries of the folder; a machine has some dozens of GPUs and slices
	maxJobs  = maxHolders
)

func (m mapping) read() (claims, error) {
	if m.folder == "" {
		return nil, nil
	}
	files, err := m.files()
	if err != nil {
		return nil, err
	}
	all := claims{}
	var errs []error
	for _, file := range files {
		if err := m.file(all, file); err != nil && len(errs) < 4 {
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// files lists those that are called like a GPU.
func (m mapping) files() (names []string, err error) {
	folder, err := os.Open(m.folder)
	if err != nil {
		return nil, fmt.Errorf("reading the job mapping: %w", err)
	}
	defer folder.Close()
	for seen := 0; ; {
		some, err := folder.Readdirnames(512)
		for _, name := range some {
			if _, _, ok := mappedTo(name); ok {
				names = append(names, name)
			}
		}
		if seen += len(some); seen > maxFiles {
			return nil, fmt.Errorf("reading the job mapping: %s has more than %d files, so it is none", m.folder, maxFiles)
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the job mapping: %w", err)
		}
	}
}

// mappedTo reads the name of a file: the number of a GPU, and of an instance of it or -1.
func mappedTo(name string) (number, gi int, ok bool) {
	whole, instance, slice := strings.Cut(name, ".")
	if number, ok = small(whole); !ok || !slice {
		return number, -1, ok
	}
	gi, ok = small(instance)
	return number, gi, ok
}

func (m mapping) file(all claims, name string) error {
	b, err := readSmall(filepath.Join(m.folder, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) { // taken away meanwhile; a folder
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the job mapping: %w", err)
	}
	uuids, err := m.uuids(name)
	if err != nil {
		return fmt.Errorf("reading the job mapping: whose GPU %s is, is not known: %w", name, err)
	}
	for _, uuid := range uuids {
		all.free(uuid)
		jobs := 0
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan() && jobs < maxJobs; {
			if job := recording.Name(strings.TrimSpace(lines.Text())); job != "" {
				all.add(uuid, recording.Holder{Job: job}, "")
				jobs++
			}
		}
	}
	return nil
}

func (m mapping) uuids(name string) ([]string, error) {
	number, gi, _ := mappedTo(name)
	if gi < 0 {
		uuid, err := m.numbers.whole(number)
		return []string{uuid}, err
	}
	uuid, err := m.numbers.gpu(number)
	if err != nil {
		return nil, err
	}
	slices := sliceOf(m.gpus, uuid, gi)
	if len(slices) == 0 {
		return nil, fmt.Errorf("no source has seen a GPU instance %d on it", gi)
	}
	return slices, nil
}
