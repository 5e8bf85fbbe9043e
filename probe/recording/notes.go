// Notes: what is rare or long, as JSON objects (SPEC §3).

package recording

import (
	"encoding/json"

	"github.com/datawait/datawait/probe/unit"
)

// Notes are the decoded notes of one stream, by kind and in the order they were written.
type Notes struct {
	Loaders      []LoaderNote
	Clocks       []ClockNote
	HookErrors   []HookErrorNote
	SaveGuards   []SaveGuardNote
	Sums         []SumsNote
	HookCosts    []HookCostNote
	Lost         []LostNote
	Ended        []EndedNote
	GPUs         []GPUNote
	DeviceNames  []DeviceNameNote
	Hosts        []HostNote
	LegsSkipped  []LegSkippedNote
	Trials       []TrialNote
	Phases       []PhaseNote
	Jobs         []JobNote
	Devices      []DeviceNote
	OtherLoaders []OtherLoaderNote
	Allocations  []AllocationNote
	Functions    []FunctionsNote
	Calls        []CallsNote
	Transforms   []TransformsNote
	Unknown      uint64 // notes of a name this version does not know
	Bad          uint64 // notes that are not JSON objects, and fields of the wrong type (left unknown)
}

// LoaderNote is one loader object: what it reads and how it was made.
type LoaderNote struct {
	Loader        uint16            `json:"loader"`
	Kind          string            `json:"kind"` // torch, watch
	Dataset       string            `json:"dataset"`
	Sampler       string            `json:"sampler"`
	Arguments     LoaderArguments   `json:"arguments"`
	Length        unit.Maybe[int64] `json:"length"`         // batches of an epoch
	DatasetLength unit.Maybe[int64] `json:"dataset_length"` // samples; of an iterated dataset as it says itself
	Iterable      unit.Maybe[bool]  `json:"iterable"`
	Name          string            `json:"name"`
}

// LoaderArguments are the arguments a DataLoader was made with.
type LoaderArguments struct {
	Workers           unit.Maybe[int64]  `json:"num_workers"`
	PrefetchFactor    unit.Maybe[int64]  `json:"prefetch_factor"` // batches per worker
	BatchSize         unit.Maybe[int64]  `json:"batch_size"`      // samples
	Shuffle           unit.Maybe[bool]   `json:"shuffle"`
	PinMemory         unit.Maybe[bool]   `json:"pin_memory"`
	PersistentWorkers unit.Maybe[bool]   `json:"persistent_workers"`
	DropLast          unit.Maybe[bool]   `json:"drop_last"`
	InOrder           unit.Maybe[bool]   `json:"in_order"`
	Context           unit.Maybe[string] `json:"multiprocessing_context"` // fork, spawn, forkserver
}

// ClockNote is a pair of clocks read back to back.
type ClockNote struct {
	Monotonic uint64 `json:"monotonic"` // ns
	Realtime  uint64 `json:"realtime"`  // ns since 1970
}

// HookErrorNote is an error the hook caught inside itself.
type HookErrorNote struct {
	Reason int64  `json:"reason"` // code, as in MarkHookDisabled
	Where  string `json:"where"`
	Error  string `json:"error"`
}

// SaveGuardNote names the save or deletion before which the test was stopped.
type SaveGuardNote struct {
	Call   string `json:"call"`
	Target string `json:"target"`
}

// SumsNote holds the totals of one loader of a ring that ended; they survive an overrun of its records.
type SumsNote struct {
	Loader     uint16             `json:"loader"`
	Fetches    unit.Maybe[uint64] `json:"fetches"`
	WaitNS     unit.Maybe[uint64] `json:"wait_ns"`
	BetweenNS  unit.Maybe[uint64] `json:"between_ns"`  // end of a fetch to the start of the next
	Batches    unit.Maybe[uint64] `json:"batches"`     // built by this process
	NoGrad     unit.Maybe[uint64] `json:"no_grad"`     // fetches
	FirstBegin unit.Maybe[uint64] `json:"first_begin"` // ns
	LastEnd    unit.Maybe[uint64] `json:"last_end"`    // ns
}

// HookCostNote is what the hook itself took of a training process, measured by the hook.
type HookCostNote struct {
	NS      uint64 `json:"ns"`      // in the fetches in which it looked
	Fetches uint64 `json:"fetches"` // how many those are
}

// LostNote counts what a ring's reader came too late for.
type LostNote struct {
	Records uint64 `json:"records"`
	Torn    uint64 `json:"torn"`
}

// EndedNote says when a training process was found to have ended, or that it still ran when its ring was read for the last time:
// then what it did afterwards is not recorded.
type EndedNote struct {
	T       uint64 `json:"t"` // ns
	Running bool   `json:"running"`
}

// GPUNote names one GPU of a stream and says where its counters come from.
type GPUNote struct {
	GPU      uint16             `json:"gpu"` // Ref of its GPU records
	UUID     string             `json:"uuid"`
	Name     string             `json:"name"`
	Source   string             `json:"source"`
	Emulated bool               `json:"emulated"`
	Grade    string             `json:"grade"`            // A, B or C
	Why      string             `json:"why"`              // why this source and no better one
	Parent   string             `json:"parent,omitempty"` // UUID of the GPU that a MIG slice is cut from
	GI       unit.Maybe[int64]  `json:"gi"`               // GPU instance of a MIG slice
	CI       unit.Maybe[int64]  `json:"ci"`               // compute instance of a MIG slice
	Index    unit.Maybe[int64]  `json:"index"`            // as NVML and DCGM number the GPUs: in the order of the PCI bus
	Interval unit.Maybe[uint64] `json:"interval_ns"`      // of its windows as the source was asked; what was got is in the records
}

// AllocationNote says to whom a GPU is assigned from a time on: all holders at that time, none if it is free. Each By speaks
// for itself, and its newest note of a GPU counts.
type AllocationNote struct {
	T       uint64   `json:"t"`                // ns: so it was found, and not before Since
	Since   uint64   `json:"since"`            // ns: last time it was looked up and found otherwise, or the first look
	UUID    string   `json:"uuid"`             // of the GPU or MIG slice
	By      string   `json:"by"`               // who told: AllocatedBy…
	Holders []Holder `json:"holders"`          // empty: free; nil: not known any more
	Shared  string   `json:"shared,omitempty"` // how several holders share it: Shared…; "" = not, or unknown
}

// Who told of an allocation.
const (
	AllocatedByKubernetes = "kubernetes" // the kubelet's pod-resources service
	AllocatedBySlurm      = "slurm"
	AllocatedByProcesses  = "processes"     // who has a context; not who was promised the GPU
	AllocatedByExporter   = "dcgm-exporter" // the labels of an exporter's page
)

// How several holders share a GPU. It is one GPU all the same.
const (
	SharedTimeSlicing = "time-slicing"
	SharedMPS         = "mps"
	SharedReplicas    = "replicas" // a device plugin gives out shares, and does not say whether by time-slicing or by MPS
)

// Holder is a job, pod or process a GPU is assigned to.
type Holder struct {
	Job       string `json:"job,omitempty"` // Slurm job id, or a name made for the processes of one control group
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	PodUID    string `json:"pod_uid,omitempty"`
	Container string `json:"container,omitempty"`
	PIDs      []int  `json:"pids,omitempty"` // that have a context, in the machine's PID namespace

	// Inside is those of them that live in a PID namespace of their own, as they call themselves in a Declaration.
	Inside []PIDInside `json:"inside,omitempty"`
}

// PIDInside is a process by its number in its own PID namespace.
type PIDInside struct {
	PID       int    `json:"pid"`
	Namespace uint64 `json:"pid_namespace"` // inode
}

// Classes of a DeviceNameNote.
const (
	ClassDisk   = "disk"
	ClassNet    = "net"
	ClassSource = "source"
)

// Sorts of a disk or an interface, for a reader who adds up: a virtual one passes on what a physical one carries.
const (
	SortPhysical = "physical"
	SortVirtual  = "virtual"  // stacked on others (dm, md, bond, bridge), or a container's end of a pair
	SortLoopback = "loopback" // never left the machine
)

// DeviceNameNote names what the Ref of DISK, NET and SOURCE records means. A source is named again with another Why when
// it fails, or works again.
type DeviceNameNote struct {
	Class string `json:"class"`
	Ref   uint16 `json:"ref"`
	Name  string `json:"name"`
	Sort  string `json:"sort,omitempty"` // of a disk or an interface
	Why   string `json:"why,omitempty"`  // why a source has no data; "" = it has
}

// HostNote describes the machine.
type HostNote struct {
	Cores       unit.Maybe[int64]  `json:"cores"` // online
	MemoryBytes unit.Maybe[uint64] `json:"memory_bytes"`
	SharedBytes unit.Maybe[uint64] `json:"shared_memory_bytes"`      // size of the job's /dev/shm
	SharedFree  unit.Maybe[uint64] `json:"shared_memory_free_bytes"` // the least that was free in it so far, to within a sixteenth
	Kernel      string             `json:"kernel"`
	Cgroup      string             `json:"cgroup"`
	Why         map[string]string  `json:"why"` // what could not be read, and the reason
}

// TrialNote says what a block of LegTrial tried.
type TrialNote struct {
	Block    uint32 `json:"block"`
	Workers  int    `json:"workers"`
	Prefetch int    `json:"prefetch"` // batches ahead per worker
	Memoised bool   `json:"memoised"`
}

// Trial is what was tried.
func (n TrialNote) Trial() Trial { return Trial{n.Workers, n.Prefetch, n.Memoised} }

// LegSkippedNote says which leg of the cached-data test was left out.
type LegSkippedNote struct {
	Leg    Leg    `json:"leg"`
	Reason string `json:"reason"`
}

// PhaseNote marks the phases of a diagnosis.
type PhaseNote struct {
	T     uint64 `json:"t"`     // ns
	Phase string `json:"phase"` // observe, test, finish
}

// JobNote says how many Python processes ran, and how many of them the hook was seen in.
type JobNote struct {
	PythonChildren int64     `json:"python_children"`
	Spools         int64     `json:"spools"`
	KeptOut        []KeptOut `json:"kept_out,omitempty"`      // some of those the hook did not run in, and why
	Refused        []string  `json:"refused,omitempty"`       // why hooked processes have no ring, each reason once
	OtherLoaders   []string  `json:"other_loaders,omitempty"` // imported by processes without a ring, as in OtherLoaderNote
}

// KeptOut is a Python process in which the hook did not run.
type KeptOut struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // its arguments, cut
	Why     string `json:"why"`     // KeptOut…
}

// Why the hook did not run.
const (
	KeptOutIsolated   = "-I"          // isolated: PYTHONPATH is ignored
	KeptOutNoEnv      = "-E"          // PYTHONPATH is ignored
	KeptOutNoSite     = "-S"          // no sitecustomize
	KeptOutNoSpool    = "environment" // without DATAWAIT_SPOOL
	KeptOutNoPath     = "path"        // PYTHONPATH lacks the hook's folder
	KeptOutOff        = "off"         // DATAWAIT_HOOK=off
	KeptOutOld        = "old"         // older than Python 3.8
	KeptOutUnreadable = "unreadable"  // its environment cannot be read
	KeptOutUser       = "user"        // it runs as another user, to whom the spool is closed
	KeptOutUnknown    = "unknown"
)

// OtherLoaderNote names a loader that was imported and whose fetches the hook does not see.
type OtherLoaderNote struct {
	Module string `json:"module"`
}

// FunctionsNote names functions that stacks were seen to hold.
type FunctionsNote struct {
	First uint32   `json:"first"` // number of the first, from 1
	Names []string `json:"names"` // file:function
}

// CallsNote says what the calls are that Stack records speak of.
type CallsNote struct {
	First uint32      `json:"first"` // number of the first, from 1
	Calls [][2]uint32 `json:"calls"` // the call it came from (an earlier one; 0 = the loop that builds), and the function
}

// TransformsNote names what Transform records speak of.
type TransformsNote struct {
	First uint32   `json:"first"` // number of the first, from 0
	Names []string `json:"names"` // module:class, or module:function
}

// DeviceNote names the GPU a training process uses, once that is seen; its declaration came before.
type DeviceNote struct {
	GPUUUID  unit.Maybe[string] `json:"gpu_uuid"`
	Index    unit.Maybe[int64]  `json:"index"`   // as the process counts
	Visible  unit.Maybe[string] `json:"visible"` // CUDA_VISIBLE_DEVICES
	Name     string             `json:"name"`
	Emulated bool               `json:"emulated"`
}

// A Note can be written to a [Sink] with [EncodeNote].
type Note interface{ noteName() string }

func (LoaderNote) noteName() string      { return "loader" }
func (ClockNote) noteName() string       { return "clock" }
func (HookErrorNote) noteName() string   { return "hook-error" }
func (SaveGuardNote) noteName() string   { return "save-guard" }
func (SumsNote) noteName() string        { return "sums" }
func (HookCostNote) noteName() string    { return "hook-cost" }
func (LostNote) noteName() string        { return "lost" }
func (EndedNote) noteName() string       { return "ended" }
func (GPUNote) noteName() string         { return "gpu" }
func (DeviceNameNote) noteName() string  { return "device-name" }
func (HostNote) noteName() string        { return "host" }
func (LegSkippedNote) noteName() string  { return "leg-skipped" }
func (TrialNote) noteName() string       { return "trial" }
func (PhaseNote) noteName() string       { return "phase" }
func (JobNote) noteName() string         { return "job" }
func (DeviceNote) noteName() string      { return "device" }
func (OtherLoaderNote) noteName() string { return "other-loader" }
func (AllocationNote) noteName() string  { return "allocation" }
func (FunctionsNote) noteName() string   { return "functions" }
func (CallsNote) noteName() string       { return "calls" }
func (TransformsNote) noteName() string  { return "transforms" }

// EncodeNote returns the note's JSON object, its name first.
func EncodeNote(n Note) json.RawMessage {
	body, err := json.Marshal(n)
	if err != nil { // every Note is made of strings, numbers and booleans
		panic("encoding note " + n.noteName() + ": " + err.Error())
	}
	head := `{"note":"` + n.noteName() + `"`
	if len(body) > len("{}") {
		head += ","
	}
	return append([]byte(head), body[1:]...)
}
