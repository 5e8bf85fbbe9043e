package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
)

// deployed are the files that start serve, on a node and in a pod.
var deployed = []string{
	"examples/systemd/datawait.service", "examples/kubernetes/base/daemonset.yaml", "examples/kubernetes/host-engine/kustomization.yaml",
	"examples/kubernetes/sidecar/job.yaml",
}

// given finds flags with their values, as a list of arguments has them and as the environment; comments are taken out before.
var (
	given   = regexp.MustCompile(`\s(?:--|Environment=DATAWAIT_SERVE_)([A-Za-z_-]+)[= ]([^\s]+)`)
	comment = regexp.MustCompile(`(?m)(^| )#.*$`)
)

// What manifests tell serve, serve understands.
func TestManifestsGiveFlagsThatServeHas(t *testing.T) {
	flags := newServe(Streams{}).Flags()
	for _, path := range deployed {
		text, err := os.ReadFile(filepath.Join("../../../..", path))
		if err != nil {
			t.Fatal(err)
		}
		found := given.FindAllStringSubmatch(comment.ReplaceAllString(string(text), ""), -1)
		if len(found) == 0 {
			t.Errorf("%s gives no flags", path)
		}
		for _, f := range found {
			name, value := strings.ReplaceAll(strings.ToLower(f[1]), "_", "-"), f[2]
			if flags.Lookup(name) == nil {
				t.Errorf("%s: serve has no flag --%s", path, name)
			} else if err := flags.Set(name, value); err != nil {
				t.Errorf("%s: --%s=%s: %v", path, name, value, err)
			}
			if name == "gpu" {
				if _, err := gpusource.Parse(value); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
}
