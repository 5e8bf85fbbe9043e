// The records of the agent of GPUs (SPEC §2, kinds 64 and 72–75).

package recording

// GPU is one counter window; Ref is the GPU in its stream (SPEC §2).
type GPU struct {
	Flags    uint8
	Ref      uint16
	Begin    uint64  // ns
	End      uint64  // ns
	SM       float32 // SM activity 0–1
	Resident float32 // any kernel resident 0–1 (GPU-util)
	Tensor   float32 // tensor pipes active 0–1
	DRAM     float32 // memory interface active 0–1
	Copy     float32 // copy engine busy 0–1
	Power    float32 // W
	SMClock  float32 // Hz
	Memory   float32 // bytes used
}

// GPU decodes the payload; call it only on a record of that kind.
func (r *Record) GPU() GPU {
	return GPU{Flags: r.Flags(), Ref: r.Ref(),
		Begin:    r.u64(8),
		End:      r.u64(16),
		SM:       r.f32(24),
		Resident: r.f32(28),
		Tensor:   r.f32(32),
		DRAM:     r.f32(36),
		Copy:     r.f32(40),
		Power:    r.f32(44),
		SMClock:  r.f32(48),
		Memory:   r.f32(52),
	}
}

// Encode returns the record, its sequence number still unset.
func (v GPU) Encode() (r Record) {
	r.head(KindGPU, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.putf(24, v.SM)
	r.putf(28, v.Resident)
	r.putf(32, v.Tensor)
	r.putf(36, v.DRAM)
	r.putf(40, v.Copy)
	r.putf(44, v.Power)
	r.putf(48, v.SMClock)
	r.putf(52, v.Memory)
	return r
}

// GPUPipes holds further counters of the window of a GPU record with the same times (SPEC §2).
type GPUPipes struct {
	Flags     uint8
	Ref       uint16
	Begin     uint64  // ns
	End       uint64  // ns
	Engine    float32 // graphics or compute engine active 0–1
	Occupancy float32 // resident warps of those that fit 0–1
	FP32      float32 // FP32 pipe active 0–1
	PCIeIn    float32 // bytes/s host to device, headers included
	PCIeOut   float32 // bytes/s device to host
	NVLinkIn  float32 // bytes/s
	NVLinkOut float32 // bytes/s
}

// GPUPipes decodes the payload; call it only on a record of that kind.
func (r *Record) GPUPipes() GPUPipes {
	return GPUPipes{Flags: r.Flags(), Ref: r.Ref(),
		Begin:     r.u64(8),
		End:       r.u64(16),
		Engine:    r.f32(24),
		Occupancy: r.f32(28),
		FP32:      r.f32(32),
		PCIeIn:    r.f32(36),
		PCIeOut:   r.f32(40),
		NVLinkIn:  r.f32(44),
		NVLinkOut: r.f32(48),
	}
}

// Encode returns the record, its sequence number still unset.
func (v GPUPipes) Encode() (r Record) {
	r.head(KindGPUPipes, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.putf(24, v.Engine)
	r.putf(28, v.Occupancy)
	r.putf(32, v.FP32)
	r.putf(36, v.PCIeIn)
	r.putf(40, v.PCIeOut)
	r.putf(44, v.NVLinkIn)
	r.putf(48, v.NVLinkOut)
	return r
}

// GPUState is what NVML tells of a GPU beside its counters, over or at the end of a window of its own (SPEC §2).
type GPUState struct {
	Flags      uint8
	Ref        uint16
	Begin      uint64  // ns
	End        uint64  // ns
	Power      float32 // W, mean of the window where the GPU counts energy
	PowerLimit float32 // W
	SMClock    float32 // Hz
	SMClockMax float32 // Hz
	MemoryUsed float32 // bytes
	MemoryAll  float32 // bytes
	Reasons    uint32  // why the clock is not higher: bits of NVML's clocks event reasons
	Link       uint32  // PCIe link as Link packs it
	Resident   float32 // GPU-util: any kernel resident 0–1
}

// GPUState decodes the payload; call it only on a record of that kind.
func (r *Record) GPUState() GPUState {
	return GPUState{Flags: r.Flags(), Ref: r.Ref(),
		Begin:      r.u64(8),
		End:        r.u64(16),
		Power:      r.f32(24),
		PowerLimit: r.f32(28),
		SMClock:    r.f32(32),
		SMClockMax: r.f32(36),
		MemoryUsed: r.f32(40),
		MemoryAll:  r.f32(44),
		Reasons:    r.u32(48),
		Link:       r.u32(52),
		Resident:   r.f32(56),
	}
}

// Encode returns the record, its sequence number still unset.
func (v GPUState) Encode() (r Record) {
	r.head(KindGPUState, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.putf(24, v.Power)
	r.putf(28, v.PowerLimit)
	r.putf(32, v.SMClock)
	r.putf(36, v.SMClockMax)
	r.putf(40, v.MemoryUsed)
	r.putf(44, v.MemoryAll)
	r.put32(48, v.Reasons)
	r.put32(52, v.Link)
	r.putf(56, v.Resident)
	return r
}

// Link is a PCIe link: generation and lanes now, and at most. 255 is unknown.
type Link struct{ Generation, Width, MaxGeneration, MaxWidth uint8 }

// Pack returns the link as a GPUState holds it.
func (l Link) Pack() uint32 {
	return uint32(l.Generation) | uint32(l.Width)<<8 | uint32(l.MaxGeneration)<<16 | uint32(l.MaxWidth)<<24
}

// UnpackLink is the inverse of Pack.
func UnpackLink(v uint32) Link {
	return Link{uint8(v), uint8(v >> 8), uint8(v >> 16), uint8(v >> 24)}
}

// GPUProcess is one process that has a context on a GPU (SPEC §2).
type GPUProcess struct {
	Flags  uint8
	Ref    uint16
	Begin  uint64 // ns: it was looked for at both ends of the window, and there at End
	End    uint64 // ns
	PID    uint32 // of the machine's own PID namespace; 0 = none is listed
	Memory uint64 // bytes
}

// GPUProcess decodes the payload; call it only on a record of that kind.
func (r *Record) GPUProcess() GPUProcess {
	return GPUProcess{Flags: r.Flags(), Ref: r.Ref(),
		Begin:  r.u64(8),
		End:    r.u64(16),
		PID:    r.u32(24),
		Memory: r.u64(32),
	}
}

// Encode returns the record, its sequence number still unset.
func (v GPUProcess) Encode() (r Record) {
	r.head(KindGPUProcess, v.Flags, v.Ref)
	r.put64(8, v.Begin)
	r.put64(16, v.End)
	r.put32(24, v.PID)
	r.put64(32, v.Memory)
	return r
}

// GPUEvent is something that happened to a GPU (SPEC §2).
type GPUEvent struct {
	Flags uint8
	Ref   uint16
	T     uint64 // ns
	Code  uint32 // GPUEventXid …
	Value uint64 // by code
}

// GPUEvent decodes the payload; call it only on a record of that kind.
func (r *Record) GPUEvent() GPUEvent {
	return GPUEvent{Flags: r.Flags(), Ref: r.Ref(), T: r.u64(8), Code: r.u32(16), Value: r.u64(24)}
}

// Encode returns the record, its sequence number still unset.
func (v GPUEvent) Encode() (r Record) {
	r.head(KindGPUEvent, v.Flags, v.Ref)
	r.put64(8, v.T)
	r.put32(16, v.Code)
	r.put64(24, v.Value)
	return r
}
