package reports

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/report"
	"github.com/datawait/datawait/report/json"
)

// Comparison are the forms of a comparison.
var Comparison = append([]report.Format{Terminal}, report.ComparisonFormats()...)

// largest is how long a JSON report may be: a run of ten thousand ranks has a tenth of it.
const largest = 256 << 20

// Load returns what a run came to: from its recording, or from a JSON report, alone or in a folder that has no recording.
func Load(path string, o analysis.Options) (*analysis.Result, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening a run: %w", err)
	}
	if !info.IsDir() {
		return loadJSON(path)
	}
	r, _, err := Analyse(path, o)
	if errors.Is(err, recording.ErrNotRecording) {
		if r, jerr := loadJSON(filepath.Join(path, "report.json")); !errors.Is(jerr, os.ErrNotExist) {
			return r, jerr
		}
	}
	return r, err
}

func loadJSON(path string) (*analysis.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a report: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err == nil && len(text) > largest {
		err = fmt.Errorf("it is longer than %d MiB", largest>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report %s: %w", path, err)
	}
	r, err := json.Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// WriteComparison makes the given forms, the screen's left out, as files in dir, and returns their names.
func WriteComparison(c *compare.Comparison, dir string, formats []report.Format) ([]string, error) {
	files, err := report.RenderComparison(c, fileFormats(formats))
	return put(dir, files, err)
}

// OneComparison writes the main file of a single form to w, for a pipe.
func OneComparison(w io.Writer, c *compare.Comparison, f report.Format) error {
	files, err := report.RenderComparison(c, []report.Format{f})
	if err == nil {
		_, err = w.Write(files["compare."+string(f)])
	}
	return err
}
