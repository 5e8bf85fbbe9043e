package recording

import "encoding/json"

// StreamID numbers a stream within one recording, from 1.
type StreamID uint32

// Producer says which side of the job a stream comes from.
type Producer string

const (
	ProducerMain   Producer = "main"
	ProducerWorker Producer = "worker"
	ProducerAgent  Producer = "agent"
)

// Declaration is what a stream says of itself once (SPEC §3). Pointers are nil where the producer did not know.
type Declaration struct {
	Producer    Producer          `json:"producer"`
	Host        string            `json:"host"`
	BootID      string            `json:"boot_id"`
	PID         int               `json:"pid"`
	PPID        int               `json:"ppid"`
	Parent      int               `json:"parent,omitempty"` // a worker's main process
	StartTicks  uint64            `json:"start_ticks"`
	Opened      uint64            `json:"opened,omitempty"`        // ns, when the ring was made; 0 = not told
	Namespace   uint64            `json:"pid_namespace,omitempty"` // inode of the one PID is meant in; 0 = not told
	Argv        []string          `json:"argv,omitempty"`
	Python      string            `json:"python,omitempty"`
	Torch       string            `json:"torch,omitempty"`
	Job         string            `json:"job,omitempty"` // what the job is called that the process belongs to; "" = not told
	Rank        *int              `json:"rank"`
	LocalRank   *int              `json:"local_rank"`
	WorldSize   *int              `json:"world_size"`
	Restart     *int              `json:"restart"`
	HookVersion string            `json:"hook_version,omitempty"`
	StartMethod string            `json:"start_method,omitempty"`
	Threads     *int              `json:"threads"` // intra-op threads of this process
	GPUUUID     *string           `json:"gpu_uuid"`
	Emulated    bool              `json:"emulated"`
	Extra       map[string]string `json:"extra,omitempty"`
}

// Sink takes what probes observe: a segment writer is one, a live book another. Calls come from one goroutine.
// A sink copies what it keeps; records are whole and in the order of their stream.
type Sink interface {
	// Declare introduces a stream and returns its number.
	Declare(Declaration) (StreamID, error)
	// Records takes records of a declared stream.
	Records(StreamID, []Record) error
	// Note takes one JSON object of a declared stream (SPEC §3).
	Note(StreamID, json.RawMessage) error
}

// Ender is a Sink that may forget a stream of which nothing more will come: a job can start workers all its life.
type Ender interface {
	End(StreamID)
}
