// Package kubernetes builds every folder as kubectl does, and holds what comes out to the API's types and to the README.
package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kinds are the types that a manifest may be of. What is of another, RBAC first of all, does not decode.
var kinds = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, batch.AddToScheme, networking.AddToScheme, monitoring.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// build returns the objects of a folder. Fields that the API does not know, or that stand there twice, are errors.
func build(t *testing.T, folder string) (objects []runtime.Object) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	strict := serializer.NewCodecFactory(kinds, serializer.EnableStrict).UniversalDeserializer()
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		object, _, err := strict.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s, %s: %v", folder, r.CurId(), err)
		}
		objects = append(objects, object)
	}
	return objects
}

// only returns the one object of its type.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) (found T) {
	t.Helper()
	n := 0
	for _, o := range objects {
		if is, ok := o.(T); ok {
			found = is
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d objects of type %T", n, found)
	}
	return found
}

// folders are all that can be built.
func folders(t *testing.T) (names []string) {
	t.Helper()
	found, err := filepath.Glob("*/kustomization.yaml")
	if err != nil || len(found) < 4 {
		t.Fatalf("folders: %v, %v", found, err)
	}
	for _, path := range found {
		names = append(names, filepath.Dir(path))
	}
	return names
}

// template is what pods are made of.
type template struct {
	folder string
	core.PodTemplateSpec
}

func templates(t *testing.T) (all []template) {
	t.Helper()
	for _, folder := range folders(t) {
		for _, object := range build(t, folder) {
			switch o := object.(type) {
			case *apps.DaemonSet:
				all = append(all, template{folder, o.Spec.Template})
			case *batch.Job:
				all = append(all, template{folder, o.Spec.Template})
			}
		}
	}
	if len(all) != 4 {
		t.Fatalf("%d templates of pods", len(all))
	}
	return all
}

func (p template) containers() []core.Container {
	return slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
}

func TestEveryFolderBuildsAndDecodesStrictly(t *testing.T) {
	want := map[string]map[string]int{
		"base":        {"Namespace": 1, "ServiceAccount": 1, "DaemonSet": 1, "NetworkPolicy": 1, "PodMonitor": 1, "PrometheusRule": 1},
		"host-engine": {"Namespace": 1, "ServiceAccount": 1, "DaemonSet": 1, "NetworkPolicy": 1, "PodMonitor": 1, "PrometheusRule": 1},
		"training":    {"Job": 1},
		"sidecar":     {"Job": 1, "NetworkPolicy": 1, "PodMonitor": 1},
	}
	for _, folder := range folders(t) {
		got := map[string]int{}
		for _, object := range build(t, folder) {
			got[object.GetObjectKind().GroupVersionKind().Kind]++
		}
		if !maps.Equal(got, want[folder]) {
			t.Errorf("%s: %v, want %v", folder, got, want[folder])
		}
	}
}

// A field that is misspelt is found: what the other tests stand on.
func TestStrictlyMeansStrictly(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [pod.yaml]\n",
		"pod.yaml":           "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostPid: true, containers: []}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.Resources()[0].AsYAML()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := serializer.NewCodecFactory(kinds, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil, nil); err == nil {
		t.Error("hostPid was taken")
	}
}

// Every mount has a volume, every volume a mount, and every port that is named is there.
func TestPodsFitTogether(t *testing.T) {
	for _, p := range templates(t) {
		volumes := map[string]bool{}
		for _, v := range p.Spec.Volumes {
			volumes[v.Name] = false
		}
		for _, c := range p.containers() {
			for _, m := range c.VolumeMounts {
				if _, ok := volumes[m.Name]; !ok {
					t.Errorf("%s: %s mounts %s, which is no volume", p.folder, c.Name, m.Name)
				}
				volumes[m.Name] = true
			}
			for _, probe := range []*core.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
				if probe != nil && !hasPort(c, probe.HTTPGet.Port.String()) {
					t.Errorf("%s: %s is probed at port %s, which it does not have", p.folder, c.Name, probe.HTTPGet.Port.String())
				}
			}
		}
		for name, mounted := range volumes {
			if !mounted {
				t.Errorf("%s: nothing mounts %s", p.folder, name)
			}
		}
	}
}

func hasPort(c core.Container, name string) bool {
	return slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == name })
}

// selects reports whether labels that are wanted are all there. No labels at all select everything, which is never meant here.
func selects(wanted, labels map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return len(wanted) > 0
}

// The DaemonSet, the NetworkPolicy and the PodMonitor speak of the same pods and the same port.
func TestSelectorsFindTheAgent(t *testing.T) {
	for _, folder := range []string{"base", "host-engine", "sidecar"} {
		objects := build(t, folder)
		var pod core.PodTemplateSpec
		if folder == "sidecar" {
			pod = only[*batch.Job](t, objects).Spec.Template
		} else {
			set := only[*apps.DaemonSet](t, objects)
			pod = set.Spec.Template
			if !selects(set.Spec.Selector.MatchLabels, pod.Labels) {
				t.Errorf("%s: the DaemonSet selects %v, and its pods have %v", folder, set.Spec.Selector.MatchLabels, pod.Labels)
			}
		}
		policy, monitor := only[*networking.NetworkPolicy](t, objects), only[*monitoring.PodMonitor](t, objects)
		for who, wanted := range map[string]map[string]string{"NetworkPolicy": policy.Spec.PodSelector.MatchLabels, "PodMonitor": monitor.Spec.Selector.MatchLabels} {
			if !selects(wanted, pod.Labels) {
				t.Errorf("%s: the %s selects %v, and pods have %v", folder, who, wanted, pod.Labels)
			}
		}
		port := *monitor.Spec.PodMetricsEndpoints[0].Port
		if allowed := policy.Spec.Ingress[0].Ports[0].Port.String(); allowed != port || port != "metrics" {
			t.Errorf("%s: Prometheus scrapes %s and may reach %s", folder, port, allowed)
		}
	}
}

func TestOnlyPrometheusReachesTheAgent(t *testing.T) {
	for _, folder := range []string{"base", "host-engine"} {
		policy := only[*networking.NetworkPolicy](t, build(t, folder)).Spec
		if !slices.Equal(policy.PolicyTypes, []networking.PolicyType{networking.PolicyTypeIngress, networking.PolicyTypeEgress}) {
			t.Errorf("%s: the policy is of %v", folder, policy.PolicyTypes)
		}
		if len(policy.Ingress) != 1 || len(policy.Ingress[0].From) != 1 || len(policy.Ingress[0].Ports) != 1 {
			t.Fatalf("%s: let in is %v", folder, policy.Ingress)
		}
		from := policy.Ingress[0].From[0] // of both selectors: pods so labelled in namespaces so labelled
		if from.PodSelector.MatchLabels["app.kubernetes.io/name"] != "prometheus" || from.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring" {
			t.Errorf("%s: let in is %v", folder, from)
		}
		if rules := len(policy.Egress); folder == "base" && rules != 0 || folder == "host-engine" && rules != 2 {
			t.Errorf("%s: %d rules let the agent out", folder, rules)
		}
	}
}

// said returns what an argument --name=value says, and that it is there once.
func said(t *testing.T, args []string, name string) string {
	t.Helper()
	var found []string
	for _, a := range args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			found = append(found, value)
		}
	}
	if len(found) != 1 {
		t.Fatalf("--%s is there %d times in %v", name, len(found), args)
	}
	return found[0]
}

func container(t *testing.T, p template, name string) core.Container {
	t.Helper()
	for _, c := range p.containers() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("%s has no container %s", p.folder, name)
	return core.Container{}
}

// The agent listens on the pod's address alone, and finds the counters where the folder says.
func TestTheAgentIsToldWhatItNeeds(t *testing.T) {
	want := map[string]string{"base": "auto", "host-engine": "dcgm=nvidia-dcgm.gpu-operator.svc:5555", "sidecar": "none"}
	for _, p := range templates(t) {
		source, runs := want[p.folder]
		if !runs {
			continue
		}
		c := container(t, p, "datawait")
		if c.Args[0] != "serve" || said(t, c.Args, "gpu") != source || said(t, c.Args, "listen") != "$(POD_IP):9977" {
			t.Errorf("%s runs %v", p.folder, c.Args)
		}
		if c.Env[0].Name != "POD_IP" || c.Env[0].ValueFrom.FieldRef.FieldPath != "status.podIP" {
			t.Errorf("%s takes the address of its pod from %v", p.folder, c.Env[0])
		}
		if _, limited := c.Resources.Limits[core.ResourceMemory]; !limited {
			t.Errorf("%s: its memory is not bounded", p.folder)
		}
	}
}

// A pod that trains has the hook, and a spool which the agent of its node, or of its pod, watches.
func TestTrainingPodsHaveTheHook(t *testing.T) {
	agents := templates(t)
	node := container(t, agents[slices.IndexFunc(agents, func(p template) bool { return p.folder == "base" })], "datawait")
	for _, p := range agents {
		if p.folder != "training" && p.folder != "sidecar" {
			continue
		}
		laid, train := container(t, p, "datawait-hook"), container(t, p, "train")
		env := map[string]core.EnvVar{}
		for _, e := range train.Env {
			env[e.Name] = e
		}
		mounts := map[string]core.VolumeMount{}
		for _, m := range train.VolumeMounts {
			mounts[m.MountPath] = m
		}
		hook := env["PYTHONPATH"].Value
		if !slices.Equal(laid.Args, []string{"hook", "--spool=" + env["DATAWAIT_SPOOL"].Value, hook}) || laid.VolumeMounts[0].MountPath != hook || mounts[hook].Name != laid.VolumeMounts[0].Name || !mounts[hook].ReadOnly {
			t.Errorf("%s: the hook is laid out by %v, and looked for in %s", p.folder, laid.Args, hook)
		}
		if job := env["DATAWAIT_JOB"].ValueFrom; job == nil || job.FieldRef.FieldPath != "metadata.labels['batch.kubernetes.io/job-name']" {
			t.Errorf("%s: the job is called after %v", p.folder, job)
		}
		spool := mounts[env["DATAWAIT_SPOOL"].Value]
		volume := p.Spec.Volumes[slices.IndexFunc(p.Spec.Volumes, func(v core.Volume) bool { return v.Name == spool.Name })]
		if p.folder == "sidecar" {
			agent := container(t, p, "datawait")
			if volume.EmptyDir == nil || volume.EmptyDir.Medium != core.StorageMediumMemory || said(t, agent.Args, "spool") != spool.MountPath {
				t.Errorf("the sidecar watches %s, and the spool is %v", said(t, agent.Args, "spool"), volume)
			}
			continue
		}
		if spool.SubPathExpr != "$(POD_UID)" || env["POD_UID"].ValueFrom.FieldRef.FieldPath != "metadata.uid" {
			t.Errorf("the pod's folder is %q of %v", spool.SubPathExpr, env["POD_UID"])
		}
		if volume.HostPath == nil || volume.HostPath.Path != said(t, node.Args, "spool") || *volume.HostPath.Type != core.HostPathDirectoryOrCreate {
			t.Errorf("the spool of pods is %v, and the agent's %s", volume.HostPath, said(t, node.Args, "spool"))
		}
	}
}

// The sidecar starts first and is restarted, and the job waits for nothing of it but its start.
func TestTheSidecarIsOne(t *testing.T) {
	all := templates(t)
	p := all[slices.IndexFunc(all, func(p template) bool { return p.folder == "sidecar" })]
	c := container(t, p, "datawait")
	if c.RestartPolicy == nil || *c.RestartPolicy != core.ContainerRestartPolicyAlways || c.StartupProbe != nil || c.LivenessProbe != nil || c.Lifecycle != nil {
		t.Errorf("it is %s", fmt.Sprint(c.RestartPolicy, c.StartupProbe, c.LivenessProbe, c.Lifecycle))
	}
	if p.Spec.ShareProcessNamespace == nil || !*p.Spec.ShareProcessNamespace {
		t.Error("it does not see the job's processes")
	}
}
