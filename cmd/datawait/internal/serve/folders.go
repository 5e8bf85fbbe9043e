package serve

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/alloc"
	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
)

// makeSpool makes the folder of the rings, open to all and everybody's files their own, where it is not there.
func makeSpool(dir string) error {
	if err := makeFor(filepath.Join(dir, "x")); err != nil {
		return fmt.Errorf("making the spool: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("making the spool: %w", err)
	}
	if os.Geteuid() == 0 && info.Mode().Perm() == 0o755 && isEmpty(dir) { // just made
		return os.Chmod(dir, 0o777|os.ModeSticky)
	}
	return nil
}

func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// makeFor makes the folder of a file.
func makeFor(path string) error { return os.MkdirAll(filepath.Dir(path), 0o755) }

// folder says where the rings of a folder go. A pod's wait until the pod is known by name, or is not after a while.
func (a *agent) folder(f spool.Folder) (recording.Sink, bool) {
	id := live.Identity{Folder: f.Path, Job: f.Job}
	if podUID.MatchString(f.Job) {
		name, known := a.pods.of(f.Job, a.options.pace.lag+10*time.Second)
		if !known {
			return nil, false
		}
		id.Job, id.Namespace, id.Pod = "", name.Namespace, name.Pod
	}
	return &members{a, a.shelf.Over(a.node.Spool(id), nil)}, true
}

// podUID is how Kubernetes names pods for good (RFC 4122), and so how a mount with subPathExpr: $(POD_UID) names its folder.
var podUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// pods names pods by their UID. A folder that calls itself after a pod is believed only if the kubelet says that a pod of that name has a
// GPU; else its jobs have no pod.
type pods struct {
	asked map[string]time.Time        // UID to when it was first asked for
	gpus  map[string]map[podName]bool // pods that have a GPU, as a teller said it last, by GPU
}

type podName struct{ Namespace, Pod string }

func newPods() pods { return pods{map[string]time.Time{}, map[string]map[podName]bool{}} }

// of returns the pod of that UID, or none once it was waited for long enough.
func (p pods) of(uid string, patience time.Duration) (name podName, known bool) {
	since, ok := p.asked[uid]
	if !ok {
		since = time.Now()
		maps.DeleteFunc(p.asked, func(_ string, since time.Time) bool { return time.Since(since) > 10*patience }) // of folders that are gone
		p.asked[uid] = since
	}
	namespace, pod := alloc.PodName(uid)
	name = podName{namespace, pod}
	for _, holders := range p.gpus {
		if pod != "" && holders[name] {
			delete(p.asked, uid)
			return name, true
		}
	}
	if time.Since(since) > patience {
		delete(p.asked, uid)
		return podName{}, true
	}
	return name, false
}

// told takes what a kubelet says of one GPU.
func (p pods) told(a recording.AllocationNote) {
	if a.By != recording.AllocatedByKubernetes {
		return
	}
	has := map[podName]bool{}
	for _, h := range a.Holders {
		has[podName{h.Namespace, h.Pod}] = true
	}
	p.gpus[a.UUID] = has
}

// gone reports whether a folder was made for a pod that the kubelet keeps no logs of any more.
func (p pods) gone(f spool.Folder) bool {
	if !podUID.MatchString(f.Job) || !alloc.PodsKnown() {
		return false
	}
	_, pod := alloc.PodName(f.Job)
	return pod == ""
}

// member is a process with a ring.
type member struct {
	host.Known
	stream recording.StreamID
}

// members is a sink that remembers the processes that tell.
type members struct {
	agent *agent
	recording.Sink
}

// Declare introduces a stream.
func (m *members) Declare(d recording.Declaration) (recording.StreamID, error) {
	id, err := m.Sink.Declare(d)
	role := recording.RoleWorker
	if d.Producer == recording.ProducerMain {
		role = recording.RoleMain
	}
	if err == nil {
		m.agent.known[id] = member{host.Known{PID: d.PID, StartTicks: d.StartTicks, Role: role}, id}
	}
	return id, err
}

// End ends a stream.
func (m *members) End(id recording.StreamID) {
	delete(m.agent.known, id)
	if e, ok := m.Sink.(recording.Ender); ok {
		e.End(id)
	}
}

// processes are all that tell.
func (a *agent) processes() (known []host.Known) {
	for m := range maps.Values(a.known) {
		known = append(known, m.Known)
	}
	return known
}
