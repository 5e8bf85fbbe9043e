package host

import (
	"os"

	"github.com/datawait/datawait/probe/recording"
)

// receivedUnit is the unit of port_rcv_data in bytes: the counter is divided by the four lanes of a port
// (Documentation/ABI/stable/sysfs-class-infiniband).
const receivedUnit = 4

// portTicks is how often the list of ports is read again, in samples.
const portTicks = 60

// sampleInfiniband writes one NET record for each InfiniBand or RoCE port, named "mlx5_0/1". What a storage client or a
// collective receives by remote memory access passes by the network stack: /proc/net/dev does not count it, nor do sockets.
func (h *Host) sampleInfiniband() error {
	d := &h.devices
	if d.portsAge%portTicks == 0 {
		d.ports = listPorts(h.files.Sys + "/class/infiniband")
	}
	d.portsAge++
	for _, p := range d.ports {
		at := h.now()
		b, err := h.files.read(p.file)
		if err != nil { // the port is gone, or counts nothing
			continue
		}
		units, ok := onlyNumber(b)
		if !ok || units > unknown/receivedUnit {
			continue
		}
		if err := h.sampleInterface(at, p.name, units*receivedUnit, meetPort); err != nil {
			return err
		}
	}
	return nil
}

func meetPort(string, *device) string { return recording.SortPhysical }

// port is one port of a host channel adapter and the file of what it received.
type port struct{ name, file string }

// listPorts finds the ports; none where the machine has no such hardware.
func listPorts(class string) (ports []port) {
	adapters, err := os.ReadDir(class)
	if err != nil {
		return nil
	}
	for _, a := range adapters {
		folder := class + "/" + a.Name() + "/ports"
		numbers, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, n := range numbers {
			ports = append(ports, port{a.Name() + "/" + n.Name(), folder + "/" + n.Name() + "/counters/port_rcv_data"})
		}
	}
	return ports
}
