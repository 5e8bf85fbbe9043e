package cost

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// BenchmarkAgentOverDCGM is BenchmarkAgent with the counters of eight A100s, read through the real binding from the stand-in host engine:
// each of 14 fields of each GPU in windows of 100 ms, as in a run that is diagnosed (whose rings are looked at five times a second, here
// twice), and of a second, as in one that is left running; and NVML's states beside. The bars are 1.5 % of one core and 70 MiB, and 0.7 % and 60 MiB, child included, flat.
//
// The stand-in computes its samples inside the child, which a host engine does elsewhere; what the library's own transport costs is not
// in it.
func BenchmarkAgentOverDCGM(b *testing.B) {
	var scenario strings.Builder
	for id := range jobRanks {
		scenario.WriteString(standin.A100(id, "sm=0.5 tensor=0.25 resident=1"))
	}
	scenario.WriteString(standin.Groups)
	for _, c := range []struct{ name, interval string }{{"diagnosed", "100ms"}, {"left-running", "1s"}} {
		b.Run(c.name, func(b *testing.B) {
			socket := filepath.Join(b.TempDir(), "engine")
			listener, err := net.Listen("unix", socket) // that somebody listens is all the stand-in needs
			if err != nil {
				b.Fatal(err)
			}
			defer listener.Close()
			env := append(standin.Environment(b, scenario.String()), realVariable+"=1")
			for range b.N {
				watchAgent(b, 5, env, "--gpu", "dcgm="+socket, "--interval", c.interval)
			}
		})
	}
}
