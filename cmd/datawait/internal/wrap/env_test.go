package wrap

import (
	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"slices"
	"strings"
	"testing"
)

func TestChildEnv(t *testing.T) {
	base := []string{"PATH=/bin", "PYTHONPATH=/a:/b", "DATAWAIT_TEST=1", "X=1", "X=2", "DATAWAIT_GPU=emulated", "EMPTY="}
	for _, tt := range []struct {
		name string
		o    Options
		want string // sorted
	}{
		{"only watched", Options{GPU: gpusource.Choice{Kind: gpusource.Auto}},
			"DATAWAIT_BUSY_DIR=/spool DATAWAIT_GPU=emulated DATAWAIT_SPOOL=/spool EMPTY= PATH=/bin PYTHONPATH=/hook:/a:/b X=2 Y=3"},
		{"tested", Options{GPU: gpusource.Choice{Kind: gpusource.Emulated}, Test: true},
			"DATAWAIT_BUSY_DIR=/spool DATAWAIT_GPU=emulated DATAWAIT_SPOOL=/spool DATAWAIT_TEST=1 EMPTY= PATH=/bin PYTHONPATH=/hook:/a:/b X=2 Y=3"},
		{"without a GPU", Options{GPU: gpusource.Choice{Kind: gpusource.None}},
			"DATAWAIT_BUSY_DIR=/spool DATAWAIT_SPOOL=/spool EMPTY= PATH=/bin PYTHONPATH=/hook:/a:/b X=2 Y=3"},
	} {
		got := childEnv(base, []string{"Y=3"}, "/spool", "/hook", tt.o)
		slices.Sort(got)
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, text, tt.want)
		}
	}
	if got := childEnv(nil, nil, "/s", "/hook", Options{}); !slices.Contains(got, "PYTHONPATH=/hook") {
		t.Errorf("without a PYTHONPATH: %v", got)
	}
}
