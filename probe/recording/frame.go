// The frames of a segment (SPEC §6).

package recording

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"
)

// Layout of a segment.
const (
	SegmentMagic       = "DWSEGM1\n"
	SegmentVersion     = 1
	SegmentHeaderBytes = 16
	FrameHeaderBytes   = 16
	MaxFrameBody       = 16 << 20
)

// FrameType says what a frame's body is.
type FrameType uint16

const (
	FrameDeclaration FrameType = 1 // JSON
	FrameRecords     FrameType = 2 // n × 64 bytes
	FrameNote        FrameType = 3 // JSON
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FrameHeader precedes every frame's body.
type FrameHeader struct {
	Length   uint32 // body bytes
	Type     FrameType
	Stream   StreamID
	Checksum uint32 // CRC-32C of the body
}

// HeaderFor returns the header of a frame with this body.
func HeaderFor(t FrameType, id StreamID, body []byte) FrameHeader {
	return FrameHeader{Length: uint32(len(body)), Type: t, Stream: id, Checksum: crc32.Checksum(body, castagnoli)}
}

// AppendTo appends the 16 bytes.
func (h FrameHeader) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.Length)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.Type))
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.Stream))
	return binary.LittleEndian.AppendUint32(b, h.Checksum)
}

// ParseFrameHeader decodes 16 bytes; nothing in them is to be believed before Plausible and Matches agree.
func ParseFrameHeader(b []byte) FrameHeader {
	_ = b[FrameHeaderBytes-1]
	return FrameHeader{
		Length:   binary.LittleEndian.Uint32(b[0:]),
		Type:     FrameType(binary.LittleEndian.Uint16(b[4:])),
		Stream:   StreamID(binary.LittleEndian.Uint32(b[8:])),
		Checksum: binary.LittleEndian.Uint32(b[12:]),
	}
}

// Plausible reports whether the length may be used to find the next frame.
func (h FrameHeader) Plausible() bool { return h.Length <= MaxFrameBody }

// Matches reports whether the body is the one the header was written for.
func (h FrameHeader) Matches(body []byte) bool {
	return uint64(h.Length) == uint64(len(body)) && h.Checksum == crc32.Checksum(body, castagnoli)
}

// AppendFrame appends a whole frame.
func AppendFrame(b []byte, t FrameType, id StreamID, body []byte) []byte {
	return append(HeaderFor(t, id, body).AppendTo(b), body...)
}

// segmentHeader returns the first 16 bytes of a segment.
func segmentHeader() []byte {
	b := append([]byte(SegmentMagic), make([]byte, 8)...)
	binary.LittleEndian.PutUint32(b[8:], SegmentVersion)
	return b
}

// recordsOf views bytes as records without copying them; a rest shorter than a record is left out. It is the reader's hot
// path. A Record is an array of bytes, so it has no alignment and every bit pattern is a valid one.
func recordsOf(b []byte) []Record {
	if len(b) < Size {
		return nil
	}
	return unsafe.Slice((*Record)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/Size)
}

// bytesOf views records as bytes without copying them.
func bytesOf(records []Record) []byte {
	if len(records) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(records))), len(records)*Size)
}
