// The records of the agent of the machine (SPEC §2, kinds 65–71).

package recording

// Machine is the whole machine over one window (SPEC §2).
type Machine struct {
	Flags           uint8
	Ref             uint16
	Begin           uint64  // ns
	End             uint64  // ns
	Busy            float32 // cores
	IOWait          float32 // cores
	Steal           float32 // cores
	Runnable        float32 // tasks
	MemoryAvailable uint64  // bytes
	Cores           float32 // online
	Foreign         float32 // busy cores outside the job's process tree
}

// Machine decodes the payload; call it only on a record of that kind.
func (r *Record) Machine() Machine {
	return Machine{Flags: r.Flags(), Ref: r.Ref(),
		Begin:           r.u64(8),
		End:             r.u64(16),
		Busy:            r.f32(24),
		IOWait:          r.f32(28),
		Steal:           r.f32(32),
		Runnable:        r.f32(36),
		MemoryAvailable: r.u64(40),
		Cores:           r.f32(48),
		Foreign:         r.f32(52),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Machine) Encode() (r Record) {
	r.head(KindMachine, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.putf(24, v.Busy)
	r.putf(28, v.IOWait)
	r.putf(32, v.Steal)
	r.putf(36, v.Runnable)
	r.put64(40, v.MemoryAvailable)
	r.putf(48, v.Cores)
	r.putf(52, v.Foreign)
	return r
}

// Process is one process over one window; Ref is a ProcessRole (SPEC §2).
type Process struct {
	Flags    uint8
	Ref      uint16
	Begin    uint64  // ns
	End      uint64  // ns
	PID      uint32  // process id
	CPU      float32 // cores
	System   float32 // cores, kernel part
	RunQueue float32 // cores waited for
	RSS      uint64  // bytes
	Threads  uint32  // threads
	Read     float32 // bytes/s from devices
	Received float32 // bytes/s over sockets
}

// Process decodes the payload; call it only on a record of that kind.
func (r *Record) Process() (v Process) {
	r.ProcessInto(&v)
	return v
}

// ProcessInto is Process, see [Record].
func (r *Record) ProcessInto(v *Process) {
	v.Flags, v.Ref = r.Flags(), r.Ref()
	v.Begin = r.u64(8)
	v.End = r.u64(16)
	v.PID = r.u32(24)
	v.CPU = r.f32(28)
	v.System = r.f32(32)
	v.RunQueue = r.f32(36)
	v.RSS = r.u64(40)
	v.Threads = r.u32(48)
	v.Read = r.f32(52)
	v.Received = r.f32(56)
}

// Encode returns the record, its sequence number still unset.
func (v Process) Encode() (r Record) {
	r.head(KindProcess, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.put32(24, v.PID)
	r.putf(28, v.CPU)
	r.putf(32, v.System)
	r.putf(36, v.RunQueue)
	r.put64(40, v.RSS)
	r.put32(48, v.Threads)
	r.putf(52, v.Read)
	r.putf(56, v.Received)
	return r
}

// Limits is what CPU and memory the job may use (SPEC §2).
type Limits struct {
	Flags         uint8
	Ref           uint16
	Begin         uint64  // ns
	End           uint64  // ns
	Quota         float32 // cores; NaN = no quota
	CPUSet        float32 // cores
	Usable        float32 // cores: least of quota, cpuset and the workers' affinity
	Throttled     float32 // periods throttled / periods
	ThrottledTime uint64  // ns in this window
	MemoryLimit   uint64  // bytes; Unknown64 = none
}

// Limits decodes the payload; call it only on a record of that kind.
func (r *Record) Limits() Limits {
	return Limits{Flags: r.Flags(), Ref: r.Ref(),
		Begin:         r.u64(8),
		End:           r.u64(16),
		Quota:         r.f32(24),
		CPUSet:        r.f32(28),
		Usable:        r.f32(32),
		Throttled:     r.f32(36),
		ThrottledTime: r.u64(40),
		MemoryLimit:   r.u64(48),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Limits) Encode() (r Record) {
	r.head(KindLimits, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.putf(24, v.Quota)
	r.putf(28, v.CPUSet)
	r.putf(32, v.Usable)
	r.putf(36, v.Throttled)
	r.put64(40, v.ThrottledTime)
	r.put64(48, v.MemoryLimit)
	return r
}

// Pressure is pressure stall information over one window, 0–1; Ref is PressureOfMachine or PressureOfJob (SPEC §2).
type Pressure struct {
	Flags      uint8
	Ref        uint16
	Begin      uint64 // ns
	End        uint64 // ns
	CPUSome    float32
	IOSome     float32
	IOFull     float32
	MemorySome float32
	MemoryFull float32
}

// Pressure decodes the payload; call it only on a record of that kind.
func (r *Record) Pressure() Pressure {
	return Pressure{Flags: r.Flags(), Ref: r.Ref(),
		Begin:      r.u64(8),
		End:        r.u64(16),
		CPUSome:    r.f32(24),
		IOSome:     r.f32(28),
		IOFull:     r.f32(32),
		MemorySome: r.f32(36),
		MemoryFull: r.f32(40),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Pressure) Encode() (r Record) {
	r.head(KindPressure, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.putf(24, v.CPUSome)
	r.putf(28, v.IOSome)
	r.putf(32, v.IOFull)
	r.putf(36, v.MemorySome)
	r.putf(40, v.MemoryFull)
	return r
}

// Device is one disk or network interface over one window; Ref names it (SPEC §2).
type Device struct {
	Flags    uint8
	Ref      uint16
	Begin    uint64  // ns
	End      uint64  // ns
	Read     float32 // bytes/s read or received
	Ops      float32 // reads/s; NaN for an interface
	Busy     float32 // 0–1
	ReadWait float32 // mean seconds of a read
}

// Device decodes the payload; call it only on a record of that kind.
func (r *Record) Device() Device {
	return Device{Flags: r.Flags(), Ref: r.Ref(),
		Begin:    r.u64(8),
		End:      r.u64(16),
		Read:     r.f32(24),
		Ops:      r.f32(28),
		Busy:     r.f32(32),
		ReadWait: r.f32(36),
	}
}

// Encode returns the record, of kind KindDisk or KindNet, with its sequence number still unset.
func (v Device) Encode(kind Kind) (r Record) {
	r.head(kind, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.putf(24, v.Read)
	r.putf(28, v.Ops)
	r.putf(32, v.Busy)
	r.putf(36, v.ReadWait)
	return r
}

// Source is health of one probe; Ref names it (SPEC §2).
type Source struct {
	Flags    uint8
	Ref      uint16
	Begin    uint64  // ns
	End      uint64  // ns
	Lateness uint64  // ns behind schedule
	Samples  uint32  // taken in the window
	Errors   uint32  // in the window
	CPU      float32 // own cores
	RSS      uint64  // own bytes
}

// Source decodes the payload; call it only on a record of that kind.
func (r *Record) Source() Source {
	return Source{Flags: r.Flags(), Ref: r.Ref(),
		Begin:    r.u64(8),
		End:      r.u64(16),
		Lateness: r.u64(24),
		Samples:  r.u32(32),
		Errors:   r.u32(36),
		CPU:      r.f32(40),
		RSS:      r.u64(44),
	}
}

// Encode returns the record, its sequence number still unset.
func (v Source) Encode() (r Record) {
	r.head(KindSource, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.put64(24, v.Lateness)
	r.put32(32, v.Samples)
	r.put32(36, v.Errors)
	r.putf(40, v.CPU)
	r.put64(44, v.RSS)
	return r
}
