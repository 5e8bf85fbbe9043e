package served

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// host is a hub at a socket, with an agent that tells.
type host struct {
	*testing.T
	*Hub
	path  string
	stop  context.CancelFunc
	ended chan struct{}
	id    recording.StreamID
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{T: t, Hub: NewHub(), path: filepath.Join(t.TempDir(), "gpu.sock"), ended: make(chan struct{})}
	l, err := Listen(h.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() {
		defer close(h.ended)
		h.Serve(ctx, l)
	}()
	t.Cleanup(func() { stop(); <-h.ended })
	h.id, _ = h.Declare(recording.Declaration{Producer: recording.ProducerAgent, PID: 1})
	return h
}

// gpu names a GPU: without one there is nothing to be let in for.
func (h *host) gpu() *host {
	h.Note(h.id, recording.EncodeNote(recording.GPUNote{UUID: "GPU-0"}))
	return h
}

// listener is a client that reads everything.
type listener struct {
	*testing.T
	conn   net.Conn
	memory *recording.Memory
	reader *recording.PipeReader
	sink   *recording.PipeForward
}

// listen connects, and returns once the hub has the client.
func (h *host) listen() *listener {
	h.Helper()
	before := h.connected()
	conn, err := Dial(h.path)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { conn.Close() })
	h.until("the client is let in", func() bool { return h.connected() > before })
	memory := recording.NewMemory(recording.Manifest{})
	return &listener{h.T, conn, memory, recording.NewPipeReader(conn), recording.NewPipeForward(memory)}
}

func (h *host) connected() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

func (h *host) until(what string, is func() bool) {
	h.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if is() {
			return
		}
	}
	h.Fatal("it did not happen: ", what)
}

// take reads so many frames.
func (l *listener) take(n int) {
	l.Helper()
	_ = l.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	for i := range n {
		frame, err := l.reader.Next()
		if err == nil {
			err = l.sink.Forward(frame)
		}
		if err != nil {
			l.Fatalf("frame %d: %v", i, err)
		}
	}
}

func (l *listener) records() (n int) {
	_ = l.memory.Scan(func(_ recording.StreamID, r []recording.Record) error { n += len(r); return nil })
	return n
}

func window(at uint64) []recording.Record {
	r := recording.GPU{Begin: at, End: at + 1, SM: 0.5}.Encode()
	r.SetSeq(uint32(at))
	return []recording.Record{r}
}

func TestWhoComesLaterIsToldWhatItMustKnow(t *testing.T) {
	h := newHost(t)
	for _, name := range []string{"old", "new"} { // the second says the same thing anew
		h.Note(h.id, recording.EncodeNote(recording.GPUNote{GPU: 0, UUID: "GPU-a", Name: name}))
	}
	h.Note(h.id, recording.EncodeNote(recording.GPUNote{GPU: 1, UUID: "GPU-b"}))
	h.Records(h.id, window(1)) // nobody listens
	l := h.listen()
	h.Records(h.id, window(2))
	l.take(1 + 2 + 1)
	s := l.memory.Streams()
	if len(s) != 1 || len(s[0].Notes.GPUs) != 2 || s[0].Notes.GPUs[0].Name != "new" || l.records() != 1 {
		t.Errorf("%+v, %d records", s, l.records())
	}
}

// A machine may have so many GPUs, slices and pods that what must be told at once is more than a client may be behind later.
func TestAClientIsLetInHoweverMuchThereIsToTell(t *testing.T) {
	h := newHost(t)
	const gpus = mostQueued + 500
	for i := range uint16(gpus) {
		h.Note(h.id, recording.EncodeNote(recording.GPUNote{GPU: i, UUID: fmt.Sprint("GPU-", i)}))
	}
	l := h.listen()
	l.take(1 + gpus)
	if n := len(l.memory.Streams()[0].Notes.GPUs); n != gpus {
		t.Errorf("%d GPUs", n)
	}
}

// A source that dies again and again is a new stream each time.
func TestStreamsThatEndedCostNothing(t *testing.T) {
	h := newHost(t).gpu()
	l := h.listen()
	l.take(2)
	for range 1000 {
		id, _ := h.Declare(recording.Declaration{Producer: recording.ProducerAgent, PID: 2})
		h.Note(id, recording.EncodeNote(recording.GPUNote{UUID: "GPU-a"}))
		h.Records(id, window(1))
		h.End(id)
		l.take(3)
	}
	if len(h.streams) != 1 || len(h.notes) != 1 {
		t.Errorf("%d streams, %d notes are kept", len(h.streams), len(h.notes))
	}
	for c := range h.clients {
		if len(c.streams) != 1 {
			t.Errorf("%d streams are kept for a client", len(c.streams))
		}
	}
	h.Records(77, window(1)) // of a stream that never was
	if h.connected() != 1 {
		t.Error("a client is dropped for what it has nothing to do with")
	}
}

// A client that does not read is let go, and nobody waits for it: not the agent, not others, not its end.
func TestAClientThatDoesNotReadIsDropped(t *testing.T) {
	h := newHost(t).gpu()
	h.listen() // and never reads
	good := h.listen()
	good.take(2)
	many := make([]recording.Record, 500)
	for i := range many {
		many[i] = window(1)[0]
	}
	sent := 0
	for ; h.connected() > 1 && sent < 10*mostQueued; sent++ {
		h.Records(h.id, many)
		good.take(1)
	}
	if h.connected() != 1 {
		t.Fatalf("%d clients after %d frames", h.connected(), sent)
	}
	h.Records(h.id, window(7))
	good.take(1)
}

func TestTheEndWaitsForNoClient(t *testing.T) {
	h := newHost(t).gpu()
	h.listen() // and never reads
	many := make([]recording.Record, 500)
	for range mostQueued / 2 {
		h.Records(h.id, many)
	}
	began := time.Now()
	h.stop()
	<-h.ended
	if took := time.Since(began); took > 5*time.Second { // one write alone may take 10 s
		t.Errorf("the end took %v", took)
	}
	if _, err := os.Lstat(h.path); err == nil {
		t.Error("the socket is left behind")
	}
}

func TestClientsAreBounded(t *testing.T) {
	h := newHost(t).gpu()
	for range mostClients {
		h.listen()
	}
	if _, err := Dial(h.path); !errors.Is(err, io.EOF) {
		t.Errorf("one too many: %v", err)
	}
	if h.connected() != mostClients {
		t.Errorf("%d clients", h.connected())
	}
}

// Whoever writes, or has left while there was nothing to tell, takes nobody's place.
func TestAClientThatWritesOrLeavesIsDropped(t *testing.T) {
	h := newHost(t).gpu()
	good := h.listen()
	for _, l := range []*listener{h.listen(), h.listen()} {
		_ = l.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = l.conn.Write(make([]byte, 1<<20))
	}
	for range 2 * mostClients {
		if conn, err := Dial(h.path); err == nil { // there may be no place for a moment
			conn.Close()
		}
	}
	h.until("only who listens is left", func() bool { return h.connected() == 1 })
	h.Records(h.id, window(3))
	good.take(3)
}

// An agent whose source names no GPU is none to ask: the client looks further.
func TestWithoutAGPUNobodyIsLetIn(t *testing.T) {
	h := newHost(t)
	if _, err := Dial(h.path); !errors.Is(err, io.EOF) {
		t.Errorf("dialled: %v", err)
	}
	h.gpu().listen()
}

func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpu.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Listen(path); err == nil {
		t.Fatal("two agents offer samples at one socket")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as after SIGKILL
	l.Close()
	again, err := Listen(path)
	if err != nil {
		t.Fatalf("a socket that a dead agent left: %v", err)
	}
	again.Close()

	for name, make := range map[string]func(string) error{
		"a file":   func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"a link":   func(p string) error { return os.Symlink("/etc/hostname", p) },
		"a folder": func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		p := filepath.Join(t.TempDir(), "gpu.sock")
		if err := make(p); err != nil {
			t.Fatal(err)
		}
		if l, err := Listen(p); err == nil {
			l.Close()
			t.Errorf("%s was taken away", name)
		}
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("%s was taken away: %v", name, err)
		}
	}
}

func TestRelay(t *testing.T) {
	h := newHost(t).gpu()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	conn, err := Dial(h.path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- Relay(ctx, w, conn) }()
	reader := recording.NewPipeReader(r)
	if f, err := reader.Next(); err != nil || f.Type != recording.FrameDeclaration {
		t.Fatalf("%+v, %v", f, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("told to stop: %v", err)
	}
	h.until("the first one is let go", func() bool { return h.connected() == 0 })
	conn, err = Dial(h.path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- Relay(context.Background(), io.Discard, conn) }()
	h.until("the relay is let in", func() bool { return h.connected() > 0 })
	h.stop()
	if err := <-ended; !errors.Is(err, ErrLeft) {
		t.Errorf("the agent ended: %v", err)
	}
}
