package doctor

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/cmd/datawait/internal/folder"
)

// lookAtMachine says what of the machine is known. Each gap is a finding.
func lookAtMachine(s seen) (all []Finding) {
	cores := Finding{ID: "cores", Subject: Machine, State: Good, Grade: "A"}
	if usable := float64(s.usable); math.IsNaN(usable) {
		cores.State, cores.Grade = Limited, ""
		cores.Says = sentence("how many cores the job may use is not known", s.host.Why["usable"])
	} else {
		cores.Says = fmt.Sprintf("the job may use %.3g cores (affinity, control group and quota together)", usable)
	}
	cores.Raise = raise(s.host.Why["quota"])
	all = append(all, cores)
	for _, what := range slices.Sorted(maps.Keys(s.host.Why)) {
		if what == "usable" {
			continue // how the number came about
		}
		all = append(all, Finding{ID: "host", Subject: Machine, State: Limited, Says: what + ": " + s.host.Why[what], Raise: raise(what)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.sources)) {
		if why := s.sources[name]; why != "" && len(name) > 5 && name[:5] == "host/" {
			all = append(all, Finding{ID: "host", Subject: Machine, State: Missing, Says: sentence(name[5:]+" is not known", why), Raise: raise(name)})
		}
	}
	return all
}

// lookAtSpool says where a job's rings would lie, and whether there is room.
func lookAtSpool() []Finding {
	f := Finding{ID: "spool", Subject: Machine, State: Good}
	run, err := folder.OpenOwn(folder.LookUp(os.Getpid()))
	if err != nil {
		f.State, f.Says = Missing, err.Error()
		f.Raise = "give the machine or container a /dev/shm (docker run --shm-size 1g), or set TMPDIR to a local disk"
		return []Finding{f}
	}
	defer run.Remove()
	var s unix.Statfs_t
	if err := unix.Statfs(run.Dir, &s); err != nil {
		f.State, f.Says = Limited, fmt.Sprintf("how much room there is for records is not known: %v", err)
		return []Finding{f}
	}
	free := s.Bavail * uint64(s.Bsize) >> 20
	f.Says = fmt.Sprintf("records go through %s, where %d MiB are free", run.Dir, free)
	if free < room>>20 {
		f.State = Limited
		f.Says += ": rings become smaller there, and PyTorch's workers pass their batches through the same memory"
		f.Raise = "a larger /dev/shm (docker run --shm-size 1g, or an emptyDir of medium Memory in the pod)"
	}
	return []Finding{f}
}

// lookAtBatches says whether PyTorch's workers have room for their batches, which go through /dev/shm whatever datawait does.
func lookAtBatches(s seen) []Finding {
	if len(s.mains) > 0 && s.mains[0].Declaration.Torch == "" {
		return nil
	}
	return shared("/dev/shm")
}

func shared(dir string) []Finding {
	f := Finding{ID: "shm", Subject: Job, State: Limited, Raise: "a larger /dev/shm (docker run --shm-size 8g, or an emptyDir of medium Memory in the pod)"}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		f.Says = fmt.Sprintf("PyTorch's workers pass batches through %s, which is not there (%v): a DataLoader with workers fails", dir, err)
		return []Finding{f}
	}
	free := s.Bavail * uint64(s.Bsize) >> 20
	if free < room>>20 {
		f.Says = fmt.Sprintf("PyTorch's workers pass batches through %s, where only %d MiB are free: a DataLoader with workers can fail or hang", dir, free)
		return []Finding{f}
	}
	return nil
}

// room is what a job with eight ranks of eight workers takes: 4 MiB for each rank and 1 MiB for each worker, a sixteenth of it each.
const room = 256 << 20
