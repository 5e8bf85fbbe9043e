package alloc

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// kubelet is a gRPC server with the kubelet's own API.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	pods        []*podresources.PodResources
	allocatable []*podresources.ContainerDevices // nil: a kubelet that is too old to tell
	hang        bool
	refuse      error
}

func (k *kubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	if k.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &podresources.ListPodResourcesResponse{PodResources: k.pods}, k.refuse
}

func (k *kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	if k.allocatable == nil {
		return nil, status.Error(codes.Unimplemented, "unknown method GetAllocatableResources")
	}
	return &podresources.AllocatableResourcesResponse{Devices: k.allocatable}, nil
}

// serve lets the kubelet listen and returns its socket.
func (k *kubelet) serve(t testing.TB) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
	podresources.RegisterPodResourcesListerServer(server, k)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return socket
}

func (k *kubelet) look(t *testing.T, v View) (claims, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := (&kubernetes{socket: k.serve(t), numberer: numberer{proc: t.TempDir()}}).look(ctx, v)
	c.sort()
	return c, err
}

func pod(name string, devices ...*podresources.ContainerDevices) *podresources.PodResources {
	return &podresources.PodResources{Namespace: "ml", Name: name, Containers: []*podresources.ContainerResources{{Name: "main", Devices: devices}}}
}

func devices(resource string, ids ...string) *podresources.ContainerDevices {
	return &podresources.ContainerDevices{ResourceName: resource, DeviceIds: ids}
}

// said writes claims as a person would: "GPU-a: ml/train-0/main".
func said(c claims) map[string]string {
	all := map[string]string{}
	for uuid, one := range c {
		var names []string
		for _, h := range one.holders {
			names = append(names, strings.Trim(strings.Join([]string{h.Namespace, h.Pod, h.Container, h.Job, h.PodUID}, "/"), "/"))
		}
		all[uuid] = strings.Join(names, " ")
		if one.shared != "" {
			all[uuid] += " (" + one.shared + ")"
		}
	}
	return all
}

func wantSaid(t *testing.T, c claims, want map[string]string) {
	t.Helper()
	if got := said(c); !reflect.DeepEqual(got, want) {
		t.Errorf("said %v, want %v", got, want)
	}
}

const gpuA, gpuB = "GPU-00000000-0000-4000-8000-00000000000a", "GPU-00000000-0000-4000-8000-00000000000b"

func TestAPodHoldsItsGPUAndOneThatNoPodHasIsFree(t *testing.T) {
	k := &kubelet{
		pods:        []*podresources.PodResources{pod("train-0", devices("nvidia.com/gpu", gpuA)), pod("web", devices("rdma/hca", "mlx5_0"))},
		allocatable: []*podresources.ContainerDevices{devices("nvidia.com/gpu", gpuA, gpuB)},
	}
	c, err := k.look(t, View{})
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, c, map[string]string{gpuA: "ml/train-0/main", gpuB: ""})
}

func TestWithoutAListOfAllDevicesNoGPUIsCalledFree(t *testing.T) {
	c, err := (&kubelet{pods: []*podresources.PodResources{pod("train-0", devices("nvidia.com/gpu", gpuA))}}).look(t, View{})
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, c, map[string]string{gpuA: "ml/train-0/main"})
}

func TestReplicasAreOneGPUWithSeveralHolders(t *testing.T) {
	k := &kubelet{
		pods: []*podresources.PodResources{
			pod("b", devices("nvidia.com/gpu.shared", gpuA+"::2")),
			pod("a", devices("nvidia.com/gpu.shared", gpuA+"::0", gpuA+"::1")),
		},
		allocatable: []*podresources.ContainerDevices{devices("nvidia.com/gpu.shared", gpuA+"::0", gpuA+"::1", gpuA+"::2", gpuB+"::0")},
	}
	c, err := k.look(t, View{})
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, c, map[string]string{gpuA: "ml/a/main ml/b/main (replicas)", gpuB: ""})
}

func TestASliceIsHeldByItsUUIDNewAndOld(t *testing.T) {
	gpus := []recording.GPUNote{{UUID: "MIG-known", Parent: gpuA, GI: unit.Some[int64](5), CI: unit.Some[int64](0)}}
	c, err := (&kubelet{pods: []*podresources.PodResources{
		pod("new", devices("nvidia.com/mig-1g.5gb", "MIG-11111111-2222-3333-4444-555555555555")),
		pod("old", devices("nvidia.com/mig-1g.5gb", "MIG-"+gpuA+"/5/0")),
	}}).look(t, View{GPUs: gpus})
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, c, map[string]string{"MIG-11111111-2222-3333-4444-555555555555": "ml/new/main", "MIG-known": "ml/old/main"})
}

func TestNamesOfDeviceFilesAreFoundThroughTheDriver(t *testing.T) {
	proc := machine(t, gpuB, gpuA) // device files in the opposite order of the bus
	k := &kubelet{pods: []*podresources.PodResources{pod("p", devices("nvidia.com/gpu", "nvidia1", "nvidia0/vgpu3")), pod("q", devices("other.com/x", "nvidia0"))}}
	c, err := (&kubernetes{socket: k.serve(t), numberer: numberer{proc: proc}}).look(context.Background(), View{})
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, c, map[string]string{gpuA: "ml/p/main", gpuB: "ml/p/main (replicas)"})
}

func TestWhatAKubeletCannotSayIsAReason(t *testing.T) {
	huge := make([]*podresources.PodResources, 100)
	for i := range huge {
		huge[i] = &podresources.PodResources{Name: strings.Repeat("x", 1<<20)}
	}
	dra := pod("d")
	dra.Containers[0].DynamicResources = []*podresources.DynamicResource{{ClaimResources: []*podresources.ClaimResource{{DriverName: "gpu.nvidia.com", DeviceName: "gpu-0"}}}}
	for _, c := range []struct {
		name string
		k    *kubelet
		why  string
	}{
		{"a hundred megabytes", &kubelet{pods: huge}, "its answer is longer than 4194304 bytes"},
		{"a refusal with control characters", &kubelet{refuse: status.Error(codes.Internal, "no\x1b[31m")}, "no\uFFFD[31m"},
		{"dynamic resource allocation", &kubelet{pods: []*podresources.PodResources{dra}}, "does not call them by UUID"},
	} {
		if _, err := c.k.look(t, View{}); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAKubeletThatHangsIsLeftAtTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := (&kubernetes{socket: (&kubelet{hang: true}).serve(t)}).look(ctx, View{})
	if err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("%v", err)
	}
}

func TestASocketWithNobodyBehindItIsAReasonAndNoSocketIsNone(t *testing.T) {
	dir := t.TempDir()
	if c, err := (&kubernetes{socket: filepath.Join(dir, "none")}).look(context.Background(), View{}); c != nil || err != nil {
		t.Errorf("%v %v", c, err)
	}
	socket := filepath.Join(dir, "dead")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	if _, err = (&kubernetes{socket: socket}).look(context.Background(), View{}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}

func TestHostileAnswersAreBounded(t *testing.T) {
	many := pod("p\x1b]0;x\x07" + strings.Repeat("y", 5000))
	var ids []string
	for i := range 5000 {
		ids = append(ids, "GPU-"+strings.Repeat("z", 10)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)))
	}
	many.Containers[0].Devices = []*podresources.ContainerDevices{devices("nvidia.com/gpu", ids...), devices("nvidia.com/gpu", "GPU-", "GPU-"+strings.Repeat("1", 500), "GPU-a b", "MIG-\n")}
	all := []*podresources.PodResources{many}
	for i := range 500 {
		all = append(all, pod("q"+string(rune('a'+i%26))+string(rune('a'+i/26)), devices("nvidia.com/gpu", ids[0])))
	}
	c, err := (&kubelet{pods: all}).look(t, View{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c) != maxClaims || len(c[ids[0]].holders) != maxHolders {
		t.Errorf("%d GPUs, %d holders", len(c), len(c[ids[0]].holders))
	}
	for uuid, one := range c {
		for _, h := range one.holders {
			if len(h.Pod) > 3*recording.MaxName || strings.ContainsAny(h.Pod, "\x1b\x07\n") || len(uuid) > 96 {
				t.Fatalf("%q holds %q", h.Pod, uuid)
			}
		}
	}
}

func TestReasonsOfOtherKindsStay(t *testing.T) {
	if got := reason(errors.New("plain")); got != "plain" {
		t.Error(got)
	}
}
