package alloc

import (
	"context"
	"fmt"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// A node with 110 pods, 8 of which have a GPU each. The cost is the agent's and the fake kubelet's together.
func BenchmarkLookAtAKubelet(b *testing.B) {
	k := &kubelet{allocatable: []*podresources.ContainerDevices{}}
	for i := range 110 {
		p := pod(fmt.Sprintf("pod-%d", i))
		if i < 8 {
			uuid := fmt.Sprintf("GPU-00000000-0000-4000-8000-%012d", i)
			p.Containers[0].Devices = []*podresources.ContainerDevices{devices("nvidia.com/gpu", uuid)}
			k.allocatable = append(k.allocatable, p.Containers[0].Devices...)
		}
		k.pods = append(k.pods, p)
	}
	t := &kubernetes{socket: k.serve(b), numberer: numberer{proc: b.TempDir()}}
	b.ReportAllocs()
	for b.Loop() {
		if c, err := t.look(context.Background(), View{}); err != nil || len(c) != 8 {
			b.Fatal(c, err)
		}
	}
}

// 8 ranks on 8 GPUs, as they are looked at every 10 s.
func BenchmarkLookAtProcesses(b *testing.B) {
	c := newCrowd(b, initialPIDs)
	v := View{Running: map[string][]int{}}
	for i := range 8 {
		c.run(100+i, "python", 5, job5)
		v.Running[fmt.Sprint("GPU-", i)] = []int{100 + i}
	}
	p := c.teller()
	b.ReportAllocs()
	for b.Loop() {
		if got, err := p.look(context.Background(), v); err != nil || len(got) != 8 {
			b.Fatal(got, err)
		}
	}
}
