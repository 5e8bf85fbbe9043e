// Package served hands the GPU samples of a datawait that is left running to others on the same machine, over a unix socket.
//
// The counters of a GPU have one owner: two watches disturb each other, and a training pod has neither an engine nor the right to
// ask one. So whoever wants samples asks the agent that has them. What is sent is what a GPU child writes into its pipe: frames of a
// recording. A client that does not read is dropped, not waited for, and so is one that writes.
//
// Read [Hub] and [Relay] first.
package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// Bounds of what clients may cost.
const (
	mostClients = 32
	mostQueued  = 1024             // frames a client may be behind
	mostKept    = 4096             // notes that are told to whoever comes later
	slow        = 10 * time.Second // in which a client must take what was written
	parting     = time.Second      // in which it must take what is left when the agent ends
)

// Hub is a sink that passes everything on to whoever is connected. Its methods but [Hub.Serve] are for one goroutine.
type Hub struct {
	mu      sync.Mutex
	streams map[recording.StreamID]recording.Declaration // of which something may still come
	last    recording.StreamID
	notes   []told
	clients map[*client]struct{}
	closed  bool
}

// told is a note that whoever comes later must know.
type told struct {
	id   recording.StreamID
	what string // notes that say the same thing anew replace each other
	raw  json.RawMessage
}

// NewHub returns a Hub without clients.
func NewHub() *Hub {
	return &Hub{streams: map[recording.StreamID]recording.Declaration{}, clients: map[*client]struct{}{}}
}

// Declare introduces a stream. A child that was started again is a new one: of those before it nothing more will come.
func (h *Hub) Declare(d recording.Declaration) (recording.StreamID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	id := h.last
	h.streams[id] = d
	h.each(func(c *client) error { return c.declare(id, d) })
	return id, nil
}

// Records passes records on.
func (h *Hub) Records(id recording.StreamID, records []recording.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(func(c *client) error { return c.records(id, records) })
	return nil
}

// Note passes a note on and keeps it for those who come later.
func (h *Hub) Note(id recording.StreamID, raw json.RawMessage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep(id, raw)
	h.each(func(c *client) error { return c.note(id, raw) })
	return nil
}

// End forgets what a stream told.
func (h *Hub) End(id recording.StreamID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.notes[:0]
	for _, n := range h.notes {
		if n.id != id {
			kept = append(kept, n)
		}
	}
	h.notes = kept
	delete(h.streams, id)
	for c := range h.clients {
		delete(c.streams, id)
	}
}

func (h *Hub) keep(id recording.StreamID, raw json.RawMessage) {
	var n struct {
		Note, Class, UUID, By string
		GPU, Ref              int
	}
	if json.Unmarshal(raw, &n) != nil {
		return
	}
	what := fmt.Sprint(n.Note, " ", n.Class, " ", n.GPU, " ", n.Ref, " ", n.By)
	if n.Note == "allocation" {
		what += " " + n.UUID
	}
	note := told{id, what, append(json.RawMessage(nil), raw...)}
	for i := range h.notes {
		if h.notes[i].id == id && h.notes[i].what == what {
			h.notes[i] = note
			return
		}
	}
	if len(h.notes) < mostKept {
		h.notes = append(h.notes, note)
	}
}

// each hands something to every client, and drops those that cannot take it.
func (h *Hub) each(f func(*client) error) {
	for c := range h.clients {
		if f(c) != nil {
			h.drop(c)
		}
	}
}

func (h *Hub) drop(c *client) {
	if _, ok := h.clients[c]; ok {
		delete(h.clients, c)
		close(c.frames)
	}
}

// join lets a client in: it is told what the streams are, and then everything that comes.
func (h *Hub) join(conn net.Conn) (*client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, net.ErrClosed
	case !h.hasGPU():
		return nil, errNothing
	case len(h.clients) >= mostClients:
		return nil, fmt.Errorf("%d clients are connected already", mostClients)
	}
	c, err := newClient(conn, len(h.streams)+len(h.notes))
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(h.streams)) {
		err = errors.Join(err, c.declare(id, h.streams[id]))
	}
	for _, n := range h.notes {
		err = errors.Join(err, c.note(n.id, n.raw))
	}
	if err != nil {
		return nil, err
	}
	h.clients[c] = struct{}{}
	return c, nil
}

var errNothing = errors.New("there is no GPU to tell of")

// hasGPU reports whether some source has named a GPU. A client that hears nothing would ask nobody else.
func (h *Hub) hasGPU() bool {
	return slices.ContainsFunc(h.notes, func(n told) bool { return strings.HasPrefix(n.what, "gpu ") })
}

// Listen makes the socket. One that another agent listens on is left alone; one that nobody listens on any more is taken over.
func Listen(path string) (net.Listener, error) {
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("offering GPU samples on %s: another datawait does already", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("offering GPU samples: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // counters are no secret, and only reading is possible
		l.Close()
		return nil, fmt.Errorf("offering GPU samples: %w", err)
	}
	return l, nil
}

// Serve takes clients until ctx ends, and closes the listener.
func (h *Hub) Serve(ctx context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var clients sync.WaitGroup
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				break
			}
			time.Sleep(100 * time.Millisecond) // out of files, perhaps for a moment
			continue
		}
		c, err := h.join(conn)
		if err != nil {
			conn.Close()
			continue
		}
		clients.Go(func() { h.send(c) })
	}
	h.close()
	clients.Wait()
}

func (h *Hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.clients {
		h.drop(c)
		time.AfterFunc(parting, func() { c.conn.Close() })
	}
}

// watch lets a client go that has left, though there is nothing to tell it, or that talks.
func (h *Hub) watch(c *client) {
	var b [1]byte
	_, _ = c.conn.Read(b[:]) // whatever comes of it
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
}

// send writes what a client has to be told until it is dropped or gone.
func (h *Hub) send(c *client) {
	defer c.conn.Close()
	go h.watch(c)
	for frame := range c.frames {
		_ = c.conn.SetWriteDeadline(time.Now().Add(slow))
		if _, err := c.conn.Write(frame); err != nil {
			break
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
}
