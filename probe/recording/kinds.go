package recording

import "strconv"

// Kinds lists every kind this version knows, in the order of SPEC §2.
var Kinds = []Kind{
	KindFetch, KindStep, KindIterator, KindMark, KindBlock, KindExposed, KindSolo, KindWorker,
	KindBatch, KindCost, KindIO, KindRead, KindStack, KindTransform, KindSampler,
	KindGPU, KindMachine, KindProcess, KindLimits, KindPressure, KindDisk, KindNet, KindSource,
	KindGPUPipes, KindGPUState, KindGPUProcess, KindGPUEvent,
}

var kindNames = map[Kind]string{
	KindFetch: "FETCH", KindStep: "STEP", KindIterator: "ITERATOR", KindMark: "MARK", KindBlock: "BLOCK",
	KindExposed: "EXPOSED", KindSolo: "SOLO", KindWorker: "WORKER",
	KindBatch: "BATCH", KindCost: "COST", KindIO: "IO", KindRead: "READ",
	KindStack: "STACK", KindTransform: "TRANSFORM", KindSampler: "SAMPLER",
	KindGPU: "GPU", KindMachine: "MACHINE", KindProcess: "PROCESS", KindLimits: "LIMITS",
	KindPressure: "PRESSURE", KindDisk: "DISK", KindNet: "NET", KindSource: "SOURCE",
	KindGPUPipes: "GPU-PIPES", KindGPUState: "GPU-STATE", KindGPUProcess: "GPU-PROCESS", KindGPUEvent: "GPU-EVENT",
}

// String returns the name SPEC §2 gives the kind, "KIND(n)" for one this version does not know.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return "KIND(" + strconv.Itoa(int(k)) + ")"
}
