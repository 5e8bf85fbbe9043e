// The records of stack sampling (SPEC §2, kinds 36–38). All are sums since their stream began.

package recording

// Stack is where the building thread was found, in one call of the stream's CallsNotes; Ref as Batch (SPEC §2).
type Stack struct {
	Flags   uint8
	Ref     uint16
	T       uint64 // ns
	On      uint64 // ns of a batch's time in which the thread ran, or could have, with this call on top
	Off     uint64 // ns in which it waited
	Unclear uint64 // ns in which neither is known
	Call    uint32 // from 1; 0 = none, or the tables were full
	Samples uint32 // looks behind all three
}

// Stack decodes the payload; call it only on a record of that kind.
func (r *Record) Stack() Stack {
	return Stack{Flags: r.Flags(), Ref: r.Ref(),
		T:       r.u64(8),
		On:      r.u64(16),
		Off:     r.u64(24),
		Unclear: r.u64(32),
		Call:    r.u32(40),
		Samples: r.u32(44),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Stack) Encode() (r Record) {
	r.head(KindStack, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put64(16, v.On)
	r.put64(24, v.Off)
	r.put64(32, v.Unclear)
	r.put32(40, v.Call)
	r.put32(44, v.Samples)
	return r
}

// Transform is the exact time of one transform; Ref as Batch (SPEC §2).
type Transform struct {
	Flags     uint8
	Ref       uint16
	T         uint64 // ns
	Calls     uint64
	NS        uint64 // wall ns in all calls
	Transform uint32 // number in the stream's TransformsNotes, from 0
}

// Transform decodes the payload; call it only on a record of that kind.
func (r *Record) Transform() Transform {
	return Transform{Flags: r.Flags(), Ref: r.Ref(),
		T:         r.u64(8),
		Calls:     r.u64(16),
		NS:        r.u64(24),
		Transform: r.u32(32),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Transform) Encode() (r Record) {
	r.head(KindTransform, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put64(16, v.Calls)
	r.put64(24, v.NS)
	r.put32(32, v.Transform)
	return r
}

// Sampler is what the sampling itself did (SPEC §2).
type Sampler struct {
	Flags   uint8
	Ref     uint16
	T       uint64 // ns
	Looks   uint64 // at the building thread
	Samples uint64 // of them while it built a batch
	Outside uint64 // samples of which a part found no room in the tables
	CPU     uint64 // ns the sampling thread took; Unknown64 if not read
	Wall    uint64 // ns since it began
}

// Sampler decodes the payload; call it only on a record of that kind.
func (r *Record) Sampler() Sampler {
	return Sampler{Flags: r.Flags(), Ref: r.Ref(),
		T:       r.u64(8),
		Looks:   r.u64(16),
		Samples: r.u64(24),
		Outside: r.u64(32),
		CPU:     r.u64(40),
		Wall:    r.u64(48),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Sampler) Encode() (r Record) {
	r.head(KindSampler, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put64(16, v.Looks)
	r.put64(24, v.Samples)
	r.put64(32, v.Outside)
	r.put64(40, v.CPU)
	r.put64(48, v.Wall)
	return r
}
