package alloc

import (
	"os"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// podLogs is where the kubelet keeps a folder for the logs of every pod, called <namespace>_<name>_<uid> (k8s.io/kubernetes,
// pkg/kubelet/kuberuntime/helpers.go, BuildPodLogsDirectory). Anybody may list it, and neither name can hold an underscore.
const podLogs = "/var/log/pods"

// maxPods bounds how many folders are looked at: Kubernetes is made for 110 pods on a node, and some run 500.
const maxPods = 8192

// PodName returns what a pod is called, by its UID, as the kubelet of this machine has it; nothing where it does not say.
func PodName(uid string) (namespace, pod string) {
	h := named(recording.Holder{PodUID: uid}, podLogs)
	return h.Namespace, h.Pod
}

// PodsKnown reports whether there is a kubelet whose pods can be seen.
func PodsKnown() bool {
	info, err := os.Stat(podLogs)
	return err == nil && info.IsDir()
}

// named fills in the names of a pod that a control group names by its UID alone. They stay unknown where nobody tells them.
func named(h recording.Holder, folder string) recording.Holder {
	if h.PodUID == "" {
		return h
	}
	f, err := os.Open(folder)
	if err != nil {
		return h
	}
	defer f.Close()
	for seen := 0; seen < maxPods; {
		names, err := f.Readdirnames(512)
		for _, name := range names {
			rest, ok := strings.CutSuffix(name, "_"+h.PodUID)
			if namespace, pod, found := strings.Cut(rest, "_"); ok && found {
				h.Namespace, h.Pod = recording.Name(namespace), recording.Name(pod)
				return h
			}
		}
		if seen += len(names); err != nil {
			break
		}
	}
	return h
}
