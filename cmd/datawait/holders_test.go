package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/datawait/datawait/probe/alloc"
	"github.com/datawait/datawait/probe/gpu/standin"
)

// kubelet is a server of the kubelet's own API, on whose node a pod has the GPUs 0 and 1.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
}

func (kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{Name: "train-0", Namespace: "team-a",
		Containers: []*podresources.ContainerResources{{Name: "trainer", Devices: []*podresources.ContainerDevices{
			{ResourceName: "nvidia.com/gpu", DeviceIds: []string{standin.UUID(0), standin.UUID(1)}}}}}}}}, nil
}

func serveKubelet(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, kubelet{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return socket
}

// gpusOf returns the report's GPUs by UUID.
func gpusOf(report map[string]any) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, g := range report["gpus"].([]any) {
		g := g.(map[string]any)
		all[g["uuid"].(string)] = g
	}
	return all
}

func holdersOf(g map[string]any) (names []string) {
	for _, h := range g["holders"].([]any) {
		names = append(names, h.(string))
	}
	return names
}

const busy = "sm=0.42 tensor=0.2 resident=0.9"

func twoGPUs() string { return standin.A100(0, busy) + standin.A100(1, busy) + standin.Groups }

func TestTheReportNamesThePodOfAGPU(t *testing.T) {
	t.Setenv(alloc.KubeletVariable, serveKubelet(t))
	report, said := recordReport(t, twoGPUs(), "dcgm=ENGINE", training)
	gpus := gpusOf(report)
	for _, id := range []int{0, 1} {
		if g := gpus[standin.UUID(id)]; g == nil || !slices.Contains(holdersOf(g), "pod team-a/train-0") || g["assigned_by"] != "kubernetes" {
			t.Errorf("GPU %d: %v\n%s", id, g, said)
		}
	}
	if warned := fmt.Sprint(report["quality"]); strings.Contains(warned, "whom the GPUs are assigned to") {
		t.Error(warned)
	}
}

func TestTheReportNamesTheJobOfAGPU(t *testing.T) {
	jobs := t.TempDir()
	for number, text := range map[string]string{"0": "4711\n", "1": "4712\n"} {
		if err := os.WriteFile(filepath.Join(jobs, number), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(alloc.MappingVariable, jobs)
	report, said := recordReport(t, twoGPUs(), "dcgm=ENGINE", training)
	gpus := gpusOf(report)
	if g := gpus[standin.UUID(0)]; g == nil || !slices.Contains(holdersOf(g), "job 4711") || g["assigned_by"] != "slurm" {
		t.Errorf("GPU 0: %v\n%s", g, said)
	}
	if g := gpus[standin.UUID(1)]; g != nil {
		t.Errorf("the GPU of another job is in the report: %v", g)
	}
}

// A socket that is there and answers nothing costs the report an answer, and the run nothing. The driver counts processes in the machine's
// own PID namespace: in another one a pid of it is nobody's.
func TestTheReportSaysWhyNobodyTellsWhoseAGPUIs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	t.Setenv(alloc.KubeletVariable, socket)
	report, said := recordReport(t, twoGPUs()+fmt.Sprintf("process gpu=0 pid=%d memory=1024\n", os.Getpid()), "dcgm=ENGINE", eightSeconds) // the second answer of a driver comes after four
	g, warned := gpusOf(report)[standin.UUID(0)], fmt.Sprint(report["quality"])
	if !strings.Contains(warned, "whom the GPUs are assigned to is not known") || !strings.Contains(warned, "connection refused") {
		t.Errorf("%s\n%s", warned, said)
	}
	if space, _ := os.Readlink("/proc/self/ns/pid"); space == "pid:[4026531836]" {
		if g["assigned_by"] != "processes" {
			t.Errorf("%v\n%s", g, said)
		}
	} else if g["assigned_by"] != nil || !strings.Contains(warned, "PID namespace of its own") {
		t.Errorf("assigned by %v; %s", g["assigned_by"], warned)
	}
}
