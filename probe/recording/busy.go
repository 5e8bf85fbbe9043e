// The busy log of the emulated device (SPEC §7).

package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Layout of a busy log.
const (
	BusyMagic       = "DWBUSY1\n"
	BusyVersion     = 1
	BusyHeaderBytes = 64
	BusyEntryBytes  = 32
)

// BusyKind says which engine of the device an entry kept busy.
type BusyKind uint32

const (
	BusyKernel BusyKind = 1
	BusyCopy   BusyKind = 2
)

// BusyHeader introduces the log of one emulated device.
type BusyHeader struct {
	Index   uint32
	Created uint64 // ns
	UUID    string // at most 40 bytes
}

// BusyEntry is one stretch of work on the device. It may lie in the future: it is queued.
type BusyEntry struct {
	Start  uint64  // ns
	End    uint64  // ns
	SM     float32 // SM activity 0–1 while it runs
	Tensor float32 // tensor pipes active 0–1 while it runs
	Kind   BusyKind
	Number uint32 // from 1
}

var errNotBusyLog = errors.New("not a busy log")

// ParseBusyHeader decodes the first 64 bytes of a busy log.
func ParseBusyHeader(b []byte) (BusyHeader, error) {
	if len(b) < BusyHeaderBytes || string(b[:8]) != BusyMagic {
		return BusyHeader{}, errNotBusyLog
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != BusyVersion {
		return BusyHeader{}, fmt.Errorf("busy log version %d: %w", v, ErrNewer)
	}
	uuid, _, _ := bytes.Cut(b[24:64], []byte{0})
	return BusyHeader{
		Index:   binary.LittleEndian.Uint32(b[12:]),
		Created: binary.LittleEndian.Uint64(b[16:]),
		UUID:    string(bytes.ToValidUTF8(uuid, []byte("?"))),
	}, nil
}

// Encode returns the 64 bytes; a UUID longer than its field is cut.
func (h BusyHeader) Encode() []byte {
	b := make([]byte, BusyHeaderBytes)
	copy(b, BusyMagic)
	binary.LittleEndian.PutUint32(b[8:], BusyVersion)
	binary.LittleEndian.PutUint32(b[12:], h.Index)
	binary.LittleEndian.PutUint64(b[16:], h.Created)
	copy(b[24:64], h.UUID)
	return b
}

// ParseBusyEntry decodes 32 bytes as they stand; Sane says whether they mean anything.
func ParseBusyEntry(b []byte) BusyEntry {
	_ = b[BusyEntryBytes-1]
	le := binary.LittleEndian
	return BusyEntry{
		Start: le.Uint64(b[0:]), End: le.Uint64(b[8:]),
		SM: math.Float32frombits(le.Uint32(b[16:])), Tensor: math.Float32frombits(le.Uint32(b[20:])),
		Kind: BusyKind(le.Uint32(b[24:])), Number: le.Uint32(b[28:]),
	}
}

// Encode returns the 32 bytes.
func (e BusyEntry) Encode() []byte {
	b := make([]byte, BusyEntryBytes)
	le := binary.LittleEndian
	le.PutUint64(b[0:], e.Start)
	le.PutUint64(b[8:], e.End)
	le.PutUint32(b[16:], math.Float32bits(e.SM))
	le.PutUint32(b[20:], math.Float32bits(e.Tensor))
	le.PutUint32(b[24:], uint32(e.Kind))
	le.PutUint32(b[28:], e.Number)
	return b
}

// Sane reports whether the entry is a stretch of time with activities between 0 and 1 on a known engine.
func (e BusyEntry) Sane() bool {
	ratio := func(v float32) bool { return v >= 0 && v <= 1 } // false for NaN
	return e.Start <= e.End && e.End < math.MaxInt64 && ratio(e.SM) && ratio(e.Tensor) &&
		(e.Kind == BusyKernel || e.Kind == BusyCopy)
}
