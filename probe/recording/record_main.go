// The records of a training process (SPEC §2, kinds 1–8).

package recording

// Fetch is one next() on a loader; Ref is the loader (SPEC §2).
type Fetch struct {
	Flags  uint8
	Ref    uint16
	Enter  uint64 // before next(), ns
	Exit   uint64 // after next(), ns
	Batch  uint32 // index in its iterator; Unknown32 if not known
	Epoch  uint32 // iterators of this loader so far
	Step   uint32 // steps finished at Enter
	Thread uint32 // native thread id
	CPU    uint64 // thread CPU ns inside the call; Unknown64 if not read
	Ready  uint32 // batches built and waiting at Enter; Unknown32 if not known
	Block  uint32 // block of the cached-data test, 0 = none
}

// Fetch decodes the payload; call it only on a record of that kind.
func (r *Record) Fetch() (v Fetch) {
	r.FetchInto(&v)
	return v
}

// FetchInto is Fetch, see [Record].
func (r *Record) FetchInto(v *Fetch) {
	v.Flags, v.Ref = r.Flags(), r.Ref()
	v.Enter = r.u64(8)
	v.Exit = r.u64(16)
	v.Batch = r.u32(24)
	v.Epoch = r.u32(28)
	v.Step = r.u32(32)
	v.Thread = r.u32(36)
	v.CPU = r.u64(40)
	v.Ready = r.u32(48)
	v.Block = r.u32(52)
}

// Encode returns the record, its sequence number still unset.
func (v Fetch) Encode() (r Record) {
	r.head(KindFetch, v.Flags, v.Ref)
	r.put64(8, v.Enter)
	r.put64(16, v.Exit)
	r.put32(24, v.Batch)
	r.put32(28, v.Epoch)
	r.put32(32, v.Step)
	r.put32(36, v.Thread)
	r.put64(40, v.CPU)
	r.put32(48, v.Ready)
	r.put32(52, v.Block)
	return r
}

// Step is one optimizer step; Ref is the optimizer (SPEC §2).
type Step struct {
	Flags  uint8
	Ref    uint16
	Begin  uint64 // ns; Unknown64 if only the end was seen
	End    uint64 // ns
	Step   uint32 // count after this one, from 1
	Thread uint32 // native thread id
	CPU    uint64 // the thread's CPU clock, ns since it started; Unknown64 if not read
}

// Step decodes the payload; call it only on a record of that kind.
func (r *Record) Step() (v Step) {
	r.StepInto(&v)
	return v
}

// StepInto is Step, see [Record].
func (r *Record) StepInto(v *Step) {
	v.Flags, v.Ref = r.Flags(), r.Ref()
	v.Begin = r.u64(8)
	v.End = r.u64(16)
	v.Step = r.u32(24)
	v.Thread = r.u32(28)
	v.CPU = r.u64(32)
}

// Encode returns the record, its sequence number still unset.
func (v Step) Encode() (r Record) {
	r.head(KindStep, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.put32(24, v.Step)
	r.put32(28, v.Thread)
	r.put64(32, v.CPU)
	return r
}

// Iterator is a loader's iterator was made or reset; Ref is the loader (SPEC §2).
type Iterator struct {
	Flags    uint8
	Ref      uint16
	Begin    uint64 // ns
	End      uint64 // ns
	Epoch    uint32 // iterators of this loader so far, from 0
	Workers  uint32 // worker processes
	Length   uint32 // batches it will yield; Unknown32 for an unsized loader
	Prefetch uint32 // batches asked ahead per worker; Unknown32 if none
}

// Iterator decodes the payload; call it only on a record of that kind.
func (r *Record) Iterator() Iterator {
	return Iterator{Flags: r.Flags(), Ref: r.Ref(),
		Begin:    r.u64(8),
		End:      r.u64(16),
		Epoch:    r.u32(24),
		Workers:  r.u32(28),
		Length:   r.u32(32),
		Prefetch: r.u32(36),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Iterator) Encode() (r Record) {
	r.head(KindIterator, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.put32(24, v.Epoch)
	r.put32(28, v.Workers)
	r.put32(32, v.Length)
	r.put32(36, v.Prefetch)
	return r
}

// Mark is something with a name happened; Ref is a MarkCode (SPEC §2).
type Mark struct {
	Flags  uint8
	Ref    uint16
	Begin  uint64 // ns
	End    uint64 // ns, = Begin for an instant
	Value  uint64 // by code
	Detail uint64 // by code
}

// Mark decodes the payload; call it only on a record of that kind.
func (r *Record) Mark() Mark {
	return Mark{Flags: r.Flags(), Ref: r.Ref(),
		Begin:  r.u64(8),
		End:    r.u64(16),
		Value:  r.u64(24),
		Detail: r.u64(32),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Mark) Encode() (r Record) {
	r.head(KindMark, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.put64(24, v.Value)
	r.put64(32, v.Detail)
	return r
}

// Block is one block of the cached-data test; Ref is a Leg (SPEC §2).
type Block struct {
	Flags     uint8
	Ref       uint16
	Begin     uint64 // ns, start of the counted part
	End       uint64 // ns
	Block     uint32 // number in the plan, from 1
	FirstStep uint32 // first counted step
	Steps     uint32 // counted steps
	Fetches   uint32 // counted fetches
	Wait      uint64 // sum of ns inside next()
	Reason    uint32 // why it is void, 0 = it is not
	Ready     uint32 // queue depth noted before it; Unknown32 if not known
}

// Block decodes the payload; call it only on a record of that kind.
func (r *Record) Block() Block {
	return Block{Flags: r.Flags(), Ref: r.Ref(),
		Begin:     r.u64(8),
		End:       r.u64(16),
		Block:     r.u32(24),
		FirstStep: r.u32(28),
		Steps:     r.u32(32),
		Fetches:   r.u32(36),
		Wait:      r.u64(40),
		Reason:    r.u32(48),
		Ready:     r.u32(52),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Block) Encode() (r Record) {
	r.head(KindBlock, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.put32(24, v.Block)
	r.put32(28, v.FirstStep)
	r.put32(32, v.Steps)
	r.put32(36, v.Fetches)
	r.put64(40, v.Wait)
	r.put32(48, v.Reason)
	r.put32(52, v.Ready)
	return r
}

// Exposed is the device clock around one fetch; Ref is the device (SPEC §2).
type Exposed struct {
	Flags  uint8
	Ref    uint16
	T      uint64 // host ns when the events were read
	Idle   uint64 // device ns between the two events around next(): the compute stream had nothing to run
	Span   uint64 // device ns from the previous fetch's second event to this one's first; Unknown64 at the first
	Fetch  uint32 // Seq of the FETCH
	Loader uint32 // loader number
}

// Exposed decodes the payload; call it only on a record of that kind.
func (r *Record) Exposed() (v Exposed) {
	r.ExposedInto(&v)
	return v
}

// ExposedInto is Exposed, see [Record].
func (r *Record) ExposedInto(v *Exposed) {
	v.Flags, v.Ref = r.Flags(), r.Ref()
	v.T = r.u64(8)
	v.Idle = r.u64(16)
	v.Span = r.u64(24)
	v.Fetch = r.u32(32)
	v.Loader = r.u32(36)
}

// Encode returns the record, its sequence number still unset.
func (v Exposed) Encode() (r Record) {
	r.head(KindExposed, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put64(16, v.Idle)
	r.put64(24, v.Span)
	r.put32(32, v.Fetch)
	r.put32(36, v.Loader)
	return r
}

// Solo is one batch was asked for while all workers were idle; Ref is the loader (SPEC §2).
type Solo struct {
	Flags uint8
	Ref   uint16
	T     uint64 // ns
	Batch uint32 // index of that batch
	Epoch uint32 // iterator
}

// Solo decodes the payload; call it only on a record of that kind.
func (r *Record) Solo() Solo {
	return Solo{Flags: r.Flags(), Ref: r.Ref(),
		T:     r.u64(8),
		Batch: r.u32(24),
		Epoch: r.u32(28),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Solo) Encode() (r Record) {
	r.head(KindSolo, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put32(24, v.Batch)
	r.put32(28, v.Epoch)
	return r
}

// Worker is a worker process belongs to a loader; Ref is the loader (SPEC §2).
type Worker struct {
	Flags  uint8
	Ref    uint16
	T      uint64 // ns
	PID    uint32 // process id
	Worker uint32 // 0 … W−1
	Epoch  uint32 // of the iterator that started it
}

// Worker decodes the payload; call it only on a record of that kind.
func (r *Record) Worker() Worker {
	return Worker{Flags: r.Flags(), Ref: r.Ref(),
		T:      r.u64(8),
		PID:    r.u32(16),
		Worker: r.u32(20),
		Epoch:  r.u32(24),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Worker) Encode() (r Record) {
	r.head(KindWorker, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put32(16, v.PID)
	r.put32(20, v.Worker)
	r.put32(24, v.Epoch)
	return r
}
