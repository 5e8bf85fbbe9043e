//go:build linux && cgo

package dcgm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	bind "github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// Built says whether this build can use the library.
const Built = true

// engine is a connection to a host engine; the library has one per process. Its methods block for as long as the library does.
type engine struct {
	o      Options
	serial int    // of field groups: their names are shared by all clients of an engine
	at     string // where it is, for people
	open   bool
}

// addresses are where a host engine usually listens (its --bind-interface and --domain-socket defaults).
var addresses = []string{"localhost:5555", "/tmp/nv-hostengine"}

// connect reaches the engine. That somebody listens is tried first: the library takes 5 s to say that nobody does.
func (e *engine) connect() error {
	var err error
	functions := needed
	if e.o.Embedded {
		functions = slices.Concat(needed, embedding)
	}
	if err := complete(functions...); err != nil {
		return err
	}
	e.at = "this process"
	what := "starting an embedded host engine"
	if e.o.Embedded {
		_, err = bind.Init(bind.Embedded)
	} else {
		var address string
		if address, err = listening(e.o.Address); err != nil {
			return err
		}
		e.at = address
		what = "connecting to the host engine at " + address
		path, isPath := strings.CutPrefix(address, "unix://")
		if isPath || strings.HasPrefix(address, "/") {
			_, err = bind.Init(bind.Standalone, path, "1")
		} else {
			_, err = bind.Init(bind.Standalone, address, "0")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	e.open = true
	return nil
}

// listening returns the address, or of the usual ones the first, at which somebody takes a connection.
func listening(address string) (string, error) {
	tried := addresses
	if address != "" {
		tried = []string{address}
	}
	var errs []error
	for _, a := range tried {
		network, at := "tcp", strings.TrimPrefix(a, "tcp://")
		if path, ok := strings.CutPrefix(a, "unix://"); ok || strings.HasPrefix(a, "/") {
			network, at = "unix", path
		}
		conn, err := net.DialTimeout(network, at, time.Second)
		if err == nil {
			conn.Close()
			return strings.TrimPrefix(a, "tcp://"), nil
		}
		errs = append(errs, fmt.Errorf("no host engine at %s: %w", a, plain(err)))
	}
	return "", errors.Join(errs...)
}

// plain takes the operation and address off a network error: they are said already.
func plain(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err
}

// disconnect gives the connection up. Groups and watches go with it.
func (e *engine) disconnect() {
	if e.open {
		e.open = false
		bind.Shutdown() // the connection may be dead already, and is given up either way
	}
}

// gpus lists what the engine has: its GPUs, or of a GPU in MIG mode the compute instances. unknown names those that it cannot tell apart.
func (e *engine) gpus() (all []found, unknown, err error) {
	ids, err := bind.GetSupportedDevices()
	if err != nil {
		return nil, nil, fmt.Errorf("listing GPUs: %w", err)
	}
	if len(ids) == 0 { // an engine without a driver starts, and sees nothing
		return nil, nil, errors.New("the host engine runs and sees no GPU: is the NVIDIA driver loaded where it runs?")
	}
	slicesOf, err := e.slices()
	if err != nil {
		return nil, nil, err
	}
	var whys []error
	for _, id := range ids {
		whole, err := identify(id)
		if errors.Is(explain(err), errLost) {
			return nil, nil, err
		}
		if err != nil {
			whys = append(whys, err)
			continue
		}
		if cut := slicesOf[id]; len(cut) > 0 {
			for _, s := range cut {
				s.name, s.parent = whole.name, whole.uuid
				all = append(all, s)
			}
			continue
		}
		all = append(all, whole)
	}
	if len(all) == 0 {
		return nil, nil, errors.Join(whys...)
	}
	return all, errors.Join(whys...), nil
}

// found is one entity to be counted.
type found struct {
	entity
	gpu          uint // DCGM's number of the GPU it is, or is cut from
	uuid, parent string
	gi, ci       int // -1 for a whole GPU
	name         string
}

// identify asks for strings alone: a live read of a profiling field would kill the engine (DCGM 4.4 to 4.6).
func identify(gpu uint) (found, error) {
	f := found{entity: entity{uint(bind.FE_GPU), gpu}, gpu: gpu, gi: -1, ci: -1}
	values, err := bind.EntitiesGetLatestValues([]bind.GroupEntityPair{{EntityGroupId: bind.FE_GPU, EntityId: gpu}},
		[]bind.Short{fieldUUID, fieldName}, liveData)
	if err != nil {
		return f, fmt.Errorf("identifying GPU %d: %w", gpu, err)
	}
	for _, v := range values {
		if v.Status != 0 || v.StringValue == nil {
			continue
		}
		if text := decodeString(*v.StringValue); v.FieldID == fieldUUID {
			f.uuid = text
		} else {
			f.name = text
		}
	}
	if f.uuid == "" {
		return f, fmt.Errorf("identifying GPU %d: the host engine does not tell its UUID; the driver may have lost the GPU", gpu)
	}
	return f, nil
}

const liveData = 1 // DCGM_FV_FLAG_LIVE_DATA

// slices lists compute instances by their GPU.
func (e *engine) slices() (map[uint][]found, error) {
	h, err := bind.GetGPUInstanceHierarchy()
	if err != nil {
		return nil, fmt.Errorf("listing MIG slices: %w", err)
	}
	of := map[uint]uint{} // GPU of a GPU instance
	for _, s := range h.EntityList[:h.Count] {
		if s.Entity.EntityGroupId == bind.FE_GPU_I {
			of[s.Entity.EntityId] = s.Parent.EntityId
		}
	}
	cut := map[uint][]found{}
	for _, s := range h.EntityList[:h.Count] {
		if s.Entity.EntityGroupId != bind.FE_GPU_CI {
			continue
		}
		gpu := of[s.Parent.EntityId]
		cut[gpu] = append(cut[gpu], found{entity: entity{uint(bind.FE_GPU_CI), s.Entity.EntityId}, gpu: gpu,
			gi: int(s.Info.NvmlInstanceId), ci: int(s.Info.NvmlComputeInstanceId)})
	}
	return cut, nil
}

// metricGroups returns what the GPU can count.
func (e *engine) metricGroups(gpu uint) ([]metricGroup, error) {
	supported, err := bind.GetSupportedMetricGroups(gpu)
	if err != nil {
		return nil, explain(fmt.Errorf("asking what GPU %d can count: %w", gpu, err))
	}
	groups := make([]metricGroup, len(supported))
	for i, g := range supported {
		groups[i] = metricGroup{major: g.Major, minor: g.Minor}
		for _, f := range g.FieldIds {
			groups[i].fields = append(groups[i].fields, uint16(f))
		}
	}
	return groups, nil
}

// fieldGroup makes a field group with a name that no other client has.
func (e *engine) fieldGroup(fields []uint16) (bind.FieldHandle, error) {
	ids := make([]bind.Short, len(fields))
	for i, f := range fields {
		ids[i] = bind.Short(f)
	}
	for {
		e.serial++
		handle, err := bind.FieldGroupCreate(fmt.Sprintf("datawait-%d-%d", os.Getpid(), e.serial), ids)
		if err != nil && strings.Contains(err.Error(), "Duplicate Key") && e.serial < 1000 {
			continue // a client of this pid in another container
		}
		return handle, err
	}
}

// group makes a group of entities.
func (e *engine) group(entities []entity) (bind.GroupHandle, error) {
	group, err := bind.CreateGroup("datawait")
	if err != nil {
		return group, err
	}
	for _, of := range entities {
		if err := bind.AddEntityToGroup(group, bind.Field_Entity_Group(of.kind), of.id); err != nil {
			return group, err
		}
	}
	return group, nil
}

// start watches the fields of all these entities, which are of one model. How many samples the engine keeps is said in time and in
// number: by time alone some versions kept too few (slurm-job-exporter 30, 32).
func (e *engine) start(of []entity, fields bind.FieldHandle, interval time.Duration) error {
	const keep, least = time.Minute, 60
	samples := max(least, int32(keep/interval))
	group, err := e.group(of)
	if err != nil {
		return err
	}
	return bind.WatchFieldsWithGroupEx(fields, group, interval.Microseconds(), keep.Seconds(), samples)
}

// read returns what the engine has of the watched fields since a time on its clock (µs), and that clock at the answer.
func (e *engine) read(group bind.GroupHandle, fields bind.FieldHandle, since int64) ([]row, int64, error) {
	values, next, err := bind.GetValuesSince(group, fields, time.UnixMicro(since))
	if err != nil {
		return nil, 0, explain(err)
	}
	rows := make([]row, len(values))
	for i := range values {
		v := &values[i]
		rows[i] = row{entity: entity{uint(v.EntityGroupId), v.EntityID}, field: uint16(v.FieldID), us: v.TS, status: v.Status,
			double: v.FieldType == bind.DCGM_FT_DOUBLE, bits: uint64(v.Int64())}
	}
	return rows, next.UnixMicro() - 1, nil
}
