package host

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// receiverURL in the environment makes the test binary a worker that fetches the URLs it is told on stdin.
const receiverURL = "DATAWAIT_TEST_RECEIVER"

func TestMain(m *testing.M) {
	if os.Getenv(receiverURL) != "" {
		receive()
		return
	}
	if threads, err := strconv.Atoi(os.Getenv(sleeperThreads)); err == nil {
		sleep(threads)
		return
	}
	os.Exit(m.Run())
}

// receive fetches one URL per line of stdin and answers each with a line.
func receive() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		n, err := fetch(lines.Text())
		fmt.Println(n, err)
	}
}

// fetch reads a body, over a connection of its own where the query is "fresh".
func fetch(url string) (int64, error) {
	client := http.DefaultClient
	if strings.HasSuffix(url, "?fresh") {
		client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	r, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	return io.Copy(io.Discard, r.Body)
}

// receiver is a child process that fetches.
type receiver struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), receiverURL+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &receiver{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return r
}

func (r *receiver) fetch(url string) {
	r.t.Helper()
	fmt.Fprintln(r.in, url)
	if !r.out.Scan() || !strings.HasSuffix(r.out.Text(), "<nil>") {
		r.t.Fatalf("fetching: %q %v", r.out.Text(), r.out.Err())
	}
}

// needSockets skips a test where the kernel or a sandbox has no socket diagnostics.
func needSockets(t *testing.T) {
	t.Helper()
	table, err := OpenTCP()
	if err != nil {
		t.Skip(err)
	}
	table.(io.Closer).Close()
}

// blobServer serves bodies of the size in the path, on the loopback of an address family; "?close" ends the connection.
func blobServer(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no loopback at %s: %v", address, err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int64
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		if r.URL.RawQuery == "close" {
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = io.CopyN(w, zeros{}, n)
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return "http://" + listener.Addr().String()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// The bytes the kernel counted for a worker are those it fetched, to the size of the HTTP headers.
func TestReceivedBytesOfARealWorker(t *testing.T) {
	for _, c := range []struct{ name, address, query string }{
		{"IPv4", "127.0.0.1:0", ""},
		{"IPv6", "[::1]:0", ""},
		{"closed before the last poll", "127.0.0.1:0", "?close"},
	} {
		t.Run(c.name, func(t *testing.T) {
			needSockets(t)
			url := blobServer(t, c.address)
			worker := startReceiver(t)
			memory := recording.NewMemory(recording.Manifest{})
			id, _ := memory.Declare(recording.Declaration{Producer: recording.ProducerAgent})
			h := New(recording.NewAppender(memory, id), Options{
				Job: func() []Known { return []Known{{PID: worker.cmd.Process.Pid, Role: recording.RoleWorker}} }})

			const blob = 5000000
			sample(t, h)
			worker.fetch(url + "/1000") // the connection is seen by the poll that follows
			sample(t, h)
			want := 1000.0
			for range 3 {
				worker.fetch(fmt.Sprintf("%s/%d", url, blob))
				want += blob
				sample(t, h)
			}
			if c.query != "" { // close the kept connection with a last body
				worker.fetch(fmt.Sprintf("%s/%d%s", url, blob, c.query))
				want += blob
				sample(t, h)
			}
			checkReceived(t, h, memory, want)
		})
	}
}

// Both address families are listed in one go as each by itself.
func TestFamiliesAtOnceAndApart(t *testing.T) {
	needSockets(t)
	var held []net.Conn
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("no loopback at %s: %v", address, err)
			continue
		}
		defer listener.Close()
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	table, err := OpenTCP()
	if err != nil {
		t.Fatal(err)
	}
	sockets := table.(*tcpSockets)
	defer sockets.Close()
	if sockets.apart {
		t.Skip("this kernel lists the families apart")
	}
	ports := func(apart bool) map[uint16]int {
		sockets.apart = apart
		seen := map[uint16]int{}
		if err := sockets.Poll(func(s Socket) { seen[s.Remote.Port]++ }); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	once, apart := ports(false), ports(true)
	for _, c := range held {
		for _, a := range []net.Addr{c.LocalAddr(), c.RemoteAddr()} { // either end is a socket
			port := uint16(a.(*net.TCPAddr).Port)
			if once[port] == 0 || once[port] != apart[port] {
				t.Errorf("port %d: %d sockets in one go, %d apart", port, once[port], apart[port])
			}
		}
	}
}

// The sum over a job is right even where each body came over a connection of its own that no poll saw.
func TestShortConnectionsOfRealWorkers(t *testing.T) {
	needSockets(t)
	url := blobServer(t, "127.0.0.1:0")
	workers := []*receiver{startReceiver(t), startReceiver(t)}
	memory := recording.NewMemory(recording.Manifest{})
	id, _ := memory.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	h := New(recording.NewAppender(memory, id), Options{Job: func() (job []Known) {
		for _, w := range workers {
			job = append(job, Known{PID: w.cmd.Process.Pid, Role: recording.RoleWorker})
		}
		return job
	}})
	sample(t, h)
	want := 0.0
	for _, w := range workers {
		w.fetch(url + "/1000") // stays open, so each poll sees the worker with this server
		want += 1000
	}
	sample(t, h)
	for range 2 {
		for _, w := range workers {
			for range 20 {
				w.fetch(url + "/300000?fresh")
				want += 300000
			}
		}
		sample(t, h)
	}
	checkReceived(t, h, memory, want)
}

// checkReceived compares with the bodies: what was counted, and what the records say, whose windows are those of the
// processes and not quite those of the sockets.
func checkReceived(t *testing.T, h *Host, memory *recording.Memory, want float64) {
	t.Helper()
	counted := 0.0
	for _, p := range h.sockets.procs {
		counted += p.bytes
	}
	recorded := receivedInAll(t, memory)
	if off := math.Abs(counted/want - 1); off > 0.001 {
		t.Errorf("counted %.0f bytes of %.0f: %.3f %% off; %v", counted, want, 100*off, h.note.Why)
	}
	if off := math.Abs(recorded/want - 1); off > 0.1 {
		t.Errorf("recorded %.0f bytes of %.0f: %.1f %% off", recorded, want, 100*off)
	}
	t.Logf("%.0f bytes of bodies: counted %+.4f %%, recorded %+.4f %%", want, 100*(counted/want-1), 100*(recorded/want-1))
}

// sample takes one sample of sockets and processes, after the last scan is old enough not to be shared.
func sample(t *testing.T, h *Host) {
	t.Helper()
	time.Sleep(60 * time.Millisecond)
	for _, p := range h.Parts() {
		if p.Name == "host/sockets" || p.Name == "host/processes" {
			if err := p.Run(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// receivedInAll adds up rate × time of all PROCESS records.
func receivedInAll(t *testing.T, m *recording.Memory) (bytes float64) {
	t.Helper()
	if err := m.Scan(func(_ recording.StreamID, records []recording.Record) error {
		for _, r := range records {
			if p := r.Process(); r.Kind() == recording.KindProcess && !isNaN(p.Received) {
				bytes += float64(p.Received) * float64(p.End-p.Begin) / 1e9
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return bytes
}
