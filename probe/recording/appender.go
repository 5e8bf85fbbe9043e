package recording

// Appender writes one stream of a [Sink] and numbers its records, so that several probes of one process can share a stream.
// Like the Sink it belongs to one goroutine.
type Appender struct {
	sink Sink
	id   StreamID
	last uint32 // sequence number of the last record the sink took
	buf  []Record
}

// NewAppender returns the writer of a stream that was just declared.
func NewAppender(sink Sink, id StreamID) *Appender { return &Appender{sink: sink, id: id} }

// Append numbers freshly encoded records and hands them to the sink. Records the sink refuses use up no numbers.
func (a *Appender) Append(records ...Record) error {
	if len(records) == 0 {
		return nil
	}
	a.buf = append(a.buf[:0], records...)
	for i := range a.buf {
		a.buf[i].SetSeq(a.last + uint32(i) + 1)
	}
	if err := a.sink.Records(a.id, a.buf); err != nil {
		return err
	}
	a.last += uint32(len(a.buf))
	return nil
}

// Note writes one typed note to the stream.
func (a *Appender) Note(n Note) error { return a.sink.Note(a.id, EncodeNote(n)) }
