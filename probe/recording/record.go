// Package recording is the format that ties probes to analysis: 64-byte records, the ring a training process writes them
// to, and the segments an agent keeps. SPEC.md in this folder is the format; read it first.
//
// The package decides what a byte means and refuses to guess: an unknown number stays [Unknown64], [Unknown32] or NaN, a torn
// record is counted and never returned, and nothing here opens a network connection or looks at a clock.
//
// Read [Record] and [Sink] first.
package recording

import (
	"encoding/binary"
	"math"
)

// Size is the length of every record in bytes.
const Size = 64

// Unknown values of unsigned fields (all bits set), as the format writes them.
const (
	Unknown64 = math.MaxUint64
	Unknown32 = math.MaxUint32
	Unknown16 = math.MaxUint16
)

// Kind says what a record's payload means (SPEC §2).
type Kind uint8

const (
	KindFetch      Kind = 1
	KindStep       Kind = 2
	KindIterator   Kind = 3
	KindMark       Kind = 4
	KindBlock      Kind = 5
	KindExposed    Kind = 6
	KindSolo       Kind = 7
	KindWorker     Kind = 8
	KindBatch      Kind = 32
	KindCost       Kind = 33
	KindIO         Kind = 34
	KindRead       Kind = 35
	KindStack      Kind = 36
	KindTransform  Kind = 37
	KindSampler    Kind = 38
	KindGPU        Kind = 64
	KindMachine    Kind = 65
	KindProcess    Kind = 66
	KindLimits     Kind = 67
	KindPressure   Kind = 68
	KindDisk       Kind = 69
	KindNet        Kind = 70
	KindSource     Kind = 71
	KindGPUPipes   Kind = 72
	KindGPUState   Kind = 73
	KindGPUProcess Kind = 74
	KindGPUEvent   Kind = 75
)

// Record is one 64-byte record as it stands in a ring or a segment.
//
// Every kind has a method that decodes it. Kinds of which there are millions have a second one, as FetchInto, that sets what the caller
// has. A struct that is returned is copied, in pieces larger than it was just written in; a processor cannot forward those from its store
// buffer, and waits: that was an eighth of an analysis.
type Record [Size]byte

// Kind returns what the payload means.
func (r *Record) Kind() Kind { return Kind(r[4]) }

// Flags returns the kind's flag bits.
func (r *Record) Flags() uint8 { return r[5] }

// Ref returns the kind's small number: a loader, device, leg or reason.
func (r *Record) Ref() uint16 { return binary.LittleEndian.Uint16(r[6:]) }

// Seq returns the position in the stream (low 32 bits, from 1).
func (r *Record) Seq() uint32 { return binary.LittleEndian.Uint32(r[0:]) }

// Latest is before the last time, in ns, that a clock is believed to show: nine years of uptime. It keeps every sum of disjoint spans within an
// int64.
const Latest = 1 << 58

// Times returns the times at offsets 8 and 16, which are begin and end (of FETCH enter and exit) of every kind below 6: a look at
// when something was, without decoding it.
func (r *Record) Times() (begin, end uint64) { return r.u64(8), r.u64(16) }

// Whole reports whether both sequence numbers agree and the slot was written at all.
func (r *Record) Whole() bool {
	s := r.Seq()
	return s != 0 && s == binary.LittleEndian.Uint32(r[60:])
}

// SetSeq writes the sequence number at both ends.
func (r *Record) SetSeq(n uint32) {
	binary.LittleEndian.PutUint32(r[0:], n)
	binary.LittleEndian.PutUint32(r[60:], n)
}

func (r *Record) head(k Kind, flags uint8, ref uint16) {
	r[4], r[5] = byte(k), flags
	binary.LittleEndian.PutUint16(r[6:], ref)
}

func (r *Record) u64(at int) uint64      { return binary.LittleEndian.Uint64(r[at:]) }
func (r *Record) u32(at int) uint32      { return binary.LittleEndian.Uint32(r[at:]) }
func (r *Record) f32(at int) float32     { return math.Float32frombits(r.u32(at)) }
func (r *Record) put64(at int, v uint64) { binary.LittleEndian.PutUint64(r[at:], v) }
func (r *Record) put32(at int, v uint32) { binary.LittleEndian.PutUint32(r[at:], v) }
func (r *Record) putf(at int, v float32) { r.put32(at, math.Float32bits(v)) }
