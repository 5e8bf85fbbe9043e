// What a worker process tells of its batches (SPEC §2, kinds 32–35).

package recording

// Batch is one batch built; Ref is the loader or Unknown16 (SPEC §2).
type Batch struct {
	Flags    uint8
	Ref      uint16
	Received uint64 // ns, index taken from the queue; Unknown64 if not seen
	Begin    uint64 // ns, dataset fetch starts
	End      uint64 // ns, batch complete, collate included
	Sent     uint64 // ns, handed to the result queue; Unknown64 if not seen
	Batch    uint32 // index in its iterator
	Resumes  uint32 // times a persistent worker was reset
	Samples  uint32 // samples in it; Unknown32 if not known
	Worker   uint32 // 0 … W−1; Unknown32 if not known
}

// Batch decodes the payload; call it only on a record of that kind.
func (r *Record) Batch() (v Batch) {
	r.BatchInto(&v)
	return v
}

// BatchInto is Batch, see [Record].
func (r *Record) BatchInto(v *Batch) {
	v.Flags, v.Ref = r.Flags(), r.Ref()
	v.Received = r.u64(8)
	v.Begin = r.u64(16)
	v.End = r.u64(24)
	v.Sent = r.u64(32)
	v.Batch = r.u32(40)
	v.Resumes = r.u32(44)
	v.Samples = r.u32(48)
	v.Worker = r.u32(52)
}

// Encode returns the record, its sequence number still unset.
func (v Batch) Encode() (r Record) {
	r.head(KindBatch, v.Flags, v.Ref)
	r.put64(8, v.Received)
	r.put64(16, v.Begin)
	r.put64(24, v.End)
	r.put64(32, v.Sent)
	r.put32(40, v.Batch)
	r.put32(44, v.Resumes)
	r.put32(48, v.Samples)
	r.put32(52, v.Worker)
	return r
}

// Cost is what the batch before it cost; Ref as Batch (SPEC §2).
type Cost struct {
	Flags      uint8
	Ref        uint16
	CPU        uint64 // ns of the building thread
	ProcessCPU uint64 // ns of the whole process
	RunQueue   uint64 // ns runnable but not running
	Collate    uint64 // wall ns inside collate_fn
	Bytes      uint64 // bytes of the batch's tensors
	Files      uint32 // files opened
	Requests   uint32 // HTTP requests seen
	Tensors    uint32 // tensors; with CostSeveral the number of batches covered
}

// Cost decodes the payload; call it only on a record of that kind.
func (r *Record) Cost() (v Cost) {
	r.CostInto(&v)
	return v
}

// CostInto is Cost, see [Record].
func (r *Record) CostInto(v *Cost) {
	v.Flags, v.Ref = r.Flags(), r.Ref()
	v.CPU = r.u64(8)
	v.ProcessCPU = r.u64(16)
	v.RunQueue = r.u64(24)
	v.Collate = r.u64(32)
	v.Bytes = r.u64(40)
	v.Files = r.u32(48)
	v.Requests = r.u32(52)
	v.Tensors = r.u32(56)
}

// Encode returns the record, its sequence number still unset.
func (v Cost) Encode() (r Record) {
	r.head(KindCost, v.Flags, v.Ref)
	r.put64(8, v.CPU)
	r.put64(16, v.ProcessCPU)
	r.put64(24, v.RunQueue)
	r.put64(32, v.Collate)
	r.put64(40, v.Bytes)
	r.put32(48, v.Files)
	r.put32(52, v.Requests)
	r.put32(56, v.Tensors)
	return r
}

// IO is read counters over the batch before it: a lower bound; Ref as Batch (SPEC §2).
type IO struct {
	Flags       uint8
	Ref         uint16
	RChar       uint64 // bytes
	ReadBytes   uint64 // bytes from the device
	Syscalls    uint64 // read calls
	Voluntary   uint64 // voluntary context switches
	Involuntary uint64 // involuntary context switches
}

// IO decodes the payload; call it only on a record of that kind.
func (r *Record) IO() (v IO) {
	r.IOInto(&v)
	return v
}

// IOInto is IO, see [Record].
func (r *Record) IOInto(v *IO) {
	v.Flags, v.Ref = r.Flags(), r.Ref()
	v.RChar = r.u64(8)
	v.ReadBytes = r.u64(16)
	v.Syscalls = r.u64(24)
	v.Voluntary = r.u64(32)
	v.Involuntary = r.u64(40)
}

// Encode returns the record, its sequence number still unset.
func (v IO) Encode() (r Record) {
	r.head(KindIO, v.Flags, v.Ref)
	r.put64(8, v.RChar)
	r.put64(16, v.ReadBytes)
	r.put64(24, v.Syscalls)
	r.put64(32, v.Voluntary)
	r.put64(40, v.Involuntary)
	return r
}

// Read is one reading of the sample that a builder takes of all it reads: a file opened or an object asked for; Ref as Batch (SPEC §2).
type Read struct {
	Flags    uint8
	Ref      uint16
	T        uint64 // ns
	Hash     uint32 // of the name
	Halvings uint32 // names whose hash is below 2^(32−Halvings) were taken at that time
}

// Read decodes the payload; call it only on a record of that kind.
func (r *Record) Read() Read {
	return Read{Flags: r.Flags(), Ref: r.Ref(), T: r.u64(8), Hash: r.u32(16), Halvings: r.u32(20)}
}

// Encode returns the record, its sequence number still unset.
func (v Read) Encode() (r Record) {
	r.head(KindRead, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put32(16, v.Hash)
	r.put32(20, v.Halvings)
	return r
}
