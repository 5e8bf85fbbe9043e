package served

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// client is one connection, and the frames that it has yet to be sent.
type client struct {
	conn    net.Conn
	frames  chan []byte
	pipe    *recording.PipeWriter
	streams map[recording.StreamID]recording.StreamID // as the pipe numbers them
}

var errSlow = errors.New("the client does not read")

// newClient returns a client for which so many frames more than usual are ready at once.
func newClient(conn net.Conn, ready int) (c *client, err error) {
	c = &client{conn: conn, frames: make(chan []byte, mostQueued+ready), streams: map[recording.StreamID]recording.StreamID{}}
	c.pipe, err = recording.NewPipeWriter(c)
	return c, err
}

// Write queues one frame.
func (c *client) Write(frame []byte) (int, error) {
	select {
	case c.frames <- append([]byte(nil), frame...):
		return len(frame), nil
	default:
		return 0, errSlow
	}
}

func (c *client) declare(id recording.StreamID, d recording.Declaration) (err error) {
	c.streams[id], err = c.pipe.Declare(d)
	return err
}

func (c *client) records(id recording.StreamID, records []recording.Record) error {
	if c.streams[id] == 0 { // it had ended when the client came
		return nil
	}
	return c.pipe.Records(c.streams[id], records)
}

func (c *client) note(id recording.StreamID, raw json.RawMessage) error {
	if c.streams[id] == 0 {
		return nil
	}
	return c.pipe.Note(c.streams[id], raw)
}

// dialFor is how long a socket may take that somebody listens on, and the first that it says.
const dialFor = time.Second

// Dial connects to the agent that listens on path. One that has no GPU to tell of says nothing and is an error.
func Dial(path string) (net.Conn, error) {
	conn, err := net.DialTimeout("unix", path, dialFor)
	if err != nil {
		return nil, err
	}
	c := &begun{Conn: conn, first: make([]byte, 1)}
	err = conn.SetReadDeadline(time.Now().Add(dialFor))
	if err == nil {
		_, err = io.ReadFull(conn, c.first)
	}
	if err = errors.Join(err, conn.SetReadDeadline(time.Time{})); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// begun is a connection whose first byte was read.
type begun struct {
	net.Conn
	first []byte
}

// Read returns that byte first.
func (b *begun) Read(into []byte) (int, error) {
	if len(b.first) > 0 && len(into) > 0 {
		n := copy(into, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(into)
}

// ErrLeft says that the agent that had the samples ended.
var ErrLeft = errors.New("the datawait that serves GPU samples on this machine ended")

// Relay passes what comes over a connection on to w, until ctx ends or the other side does.
func Relay(ctx context.Context, w io.Writer, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	_, err := io.Copy(w, conn)
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil, errors.Is(err, syscall.ECONNRESET): // it ended before it took the connection
		return ErrLeft
	}
	return err
}
