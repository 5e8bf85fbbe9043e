package alloc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// The library writes its errors to stderr, which is the job's.
func init() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }

// DefaultKubelet is where a kubelet serves its pod-resources API (k8s.io/kubernetes, pkg/kubelet/apis/podresources).
const DefaultKubelet = "/var/lib/kubelet/pod-resources/kubelet.sock"

// maxAnswer bounds a kubelet's answer: gRPC's own default, with which dcgm-exporter asks too. A node of 250 pods has some 100 KiB.
const maxAnswer = 4 << 20

// draDriver is NVIDIA's driver for dynamic resource allocation (k8s-dra-driver-gpu): its devices are called by names of its own.
const draDriver = "gpu.nvidia.com"

// kubernetes asks the kubelet of this node.
type kubernetes struct {
	socket string
	numberer
}

func (k *kubernetes) by() string { return recording.AllocatedByKubernetes }

// look lists the pods that have GPUs. It needs no root where the socket's folder is mounted for it, as it is for exporters.
func (k *kubernetes) look(ctx context.Context, v View) (claims, error) {
	switch _, err := os.Stat(k.socket); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking the kubelet: %w", err)
	}
	conn, err := dial(k.socket)
	if err != nil {
		return nil, fmt.Errorf("asking the kubelet: %w", err)
	}
	defer conn.Close()
	client := podresources.NewPodResourcesListerClient(conn)
	pods, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("asking the kubelet at %s: %s", k.socket, reason(err))
	}
	t := &podTable{claims: claims{}, numbers: &k.numberer, view: v}
	t.pods(pods)
	// Without this call, which is younger, it is not known which GPUs nobody has.
	if all, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{}); err == nil {
		t.free(all)
	}
	return t.claims, t.err
}

func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///kubelet", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}))
}

// reason says in a person's words what gRPC says in its own.
func reason(err error) string {
	s, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	switch s.Code() {
	case codes.DeadlineExceeded:
		return "it did not answer in time"
	case codes.ResourceExhausted:
		return fmt.Sprintf("it refuses, or its answer is longer than %d bytes (%s)", maxAnswer, recording.Name(s.Message()))
	case codes.Unavailable:
		text := s.Message()
		for _, known := range []string{"permission denied", "connection refused", "no such file or directory"} {
			if strings.Contains(text, known) {
				return known
			}
		}
	}
	return recording.Name(s.Message())
}

// podTable turns what a kubelet lists into claims.
type podTable struct {
	claims
	numbers *numberer
	view    View
	err     error
}

func (t *podTable) pods(list *podresources.ListPodResourcesResponse) {
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			holder := recording.Holder{Namespace: recording.Name(pod.GetNamespace()), Pod: recording.Name(pod.GetName()), Container: recording.Name(container.GetName())}
			for _, d := range container.GetDevices() {
				t.each(d, func(uuid, shared string) { t.add(uuid, holder, shared) })
			}
			for _, r := range container.GetDynamicResources() {
				for _, claimed := range r.GetClaimResources() {
					if claimed.GetDriverName() == draDriver {
						t.err = errors.New("asking the kubelet: pods have GPUs by dynamic resource allocation, which does not call them by UUID")
					}
				}
			}
		}
	}
}

func (t *podTable) free(all *podresources.AllocatableResourcesResponse) {
	for _, d := range all.GetDevices() {
		t.each(d, func(uuid, _ string) { t.claims.free(uuid) })
	}
}

// each calls f for every GPU that a list of devices names.
func (t *podTable) each(d *podresources.ContainerDevices, f func(uuid, shared string)) {
	for _, id := range d.GetDeviceIds() {
		device, ok := parseDeviceID(id)
		if !ok || device.uuid == "" && !strings.HasPrefix(d.GetResourceName(), "nvidia.com/") {
			continue
		}
		shared := ""
		if device.replica {
			shared = recording.SharedReplicas
		}
		for _, uuid := range t.uuids(device) {
			f(uuid, shared)
		}
	}
}

func (t *podTable) uuids(d deviceID) []string {
	if d.uuid != "" {
		return []string{t.sliceName(d.uuid)}
	}
	uuid, ok := t.numbers.now(t.view.GPUs).minor[d.number] // Google's names are those of device files
	switch {
	case ok && d.gi < 0:
		return []string{uuid}
	case ok:
		return sliceOf(t.view.GPUs, uuid, d.gi)
	}
	return nil
}

// sliceName returns the UUID that sources give to a slice which is called in the way of drivers before R470: "MIG-GPU-<uuid>/<gi>/<ci>".
func (t *podTable) sliceName(id string) string {
	parent, instances, ok := strings.Cut(strings.TrimPrefix(id, "MIG-"), "/")
	if !ok || !strings.HasPrefix(id, "MIG-GPU-") {
		return id
	}
	gi, ci, _ := strings.Cut(instances, "/")
	numbered := func(have unit.Maybe[int64], want string) bool {
		n, known := have.Get()
		return known && strconv.FormatInt(n, 10) == want
	}
	for _, g := range t.view.GPUs {
		if g.Parent == parent && numbered(g.GI, gi) && numbered(g.CI, ci) && g.UUID != "" {
			return g.UUID
		}
	}
	return id
}
