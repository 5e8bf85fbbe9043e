package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakepassword is the bcrypt hash of that word, of exporter-toolkit's own tests.
const fakepassword = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

// With --web-config everything is behind TLS and a password.
func TestTLSAndPassword(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	file := filepath.Join(dir, "web.yml")
	write(t, file, "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  prometheus: "+fakepassword+"\n")
	s := start(t, func(_ *served, c *Config) { c.WebConfig = file })
	for _, c := range []struct {
		user, password string
		want           int
	}{{"", "", 401}, {"prometheus", "wrong", 401}, {"somebody", "fakepassword", 401}, {"prometheus", "fakepassword", 200}} {
		for _, path := range []string{"/metrics", "/", "/healthz", "/readyz"} {
			r, err := http.NewRequest(http.MethodGet, "https://"+s.address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.user != "" {
				r.SetBasicAuth(c.user, c.password)
			}
			answer, err := over(pool).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != c.want || c.want == 401 && strings.Contains(string(body), "datawait") {
				t.Errorf("%s as %q with %q: %d\n%.200s", path, c.user, c.password, answer.StatusCode, body)
			}
		}
	}
	if r, body := s.get(t, "/metrics"); r.StatusCode != http.StatusBadRequest || strings.Contains(body, "datawait_") {
		t.Errorf("without TLS: %d\n%.200s", r.StatusCode, body)
	}
}

// A file that is none, or names what is not there, ends it before it listens, and says which file and why.
func TestBadConfig(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	for _, c := range []struct{ text, why string }{
		{"tls_server_confg:\n  cert_file: cert.pem\n", "tls_server_confg"},
		{"{", "yaml"},
		{"tls_server_config:\n  cert_file: cert.pem\n", "key"},
		{"tls_server_config:\n  cert_file: cert.pem\n  key_file: cert.pem\n", "rather than a key"},
		{"tls_server_config:\n  cert_file: none.pem\n  key_file: key.pem\n", "none.pem"},
		{"basic_auth_users:\n  prometheus: plain\n", "hashedSecret too short"},
	} {
		file := filepath.Join(dir, "web.yml")
		write(t, file, c.text)
		listened := false
		config := (&served{}).config()
		config.WebConfig, config.Listening = file, func(net.Addr) { listened = true }
		err := Serve(t.Context(), config)
		if err == nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), c.why) || Hint(err) == "" {
			t.Errorf("%q: %v; hint: %s", c.text, err, Hint(err))
		}
		if listened {
			t.Errorf("%q: it listened", c.text)
		}
	}
	if err := Check(filepath.Join(dir, "nowhere.yml")); err == nil || !strings.Contains(err.Error(), "nowhere.yml") {
		t.Errorf("no file: %v", err)
	}
	if err := Check(""); err != nil {
		t.Errorf("no --web-config: %v", err)
	}
}

// Where it cannot listen it says so, and what to do.
func TestCannotListen(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, c := range []struct{ address, want, hint string }{
		{other.Addr().String(), "listening on " + other.Addr().String() + ": address already in use", "--listen"},
		{"192.0.2.1:9977", "listening on 192.0.2.1:9977: bind: cannot assign requested address", "--listen"},
		{"nowhere", "listening on nowhere: address nowhere: missing port in address", ""},
	} {
		config := (&served{}).config()
		config.Listen = c.address
		err := Serve(t.Context(), config)
		if err == nil || err.Error() != c.want || !strings.Contains(Hint(err), c.hint) {
			t.Errorf("%v; hint: %s", err, Hint(err))
		}
	}
}

// Nothing can be changed: other methods are refused, and so are other paths.
func TestOnlyReads(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "QUIT"} {
			r, err := http.NewRequest(method, "http://"+s.address+path, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, answer.StatusCode)
			}
		}
		r, _ := s.get(t, path)
		if r.StatusCode != http.StatusOK || r.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d, %v", path, r.StatusCode, r.Header)
		}
	}
	for _, path := range []string{"/nowhere", "/debug/pprof/", "/metrics/"} {
		if r, _ := s.get(t, path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// Another handler is shown with the same headers.
func TestAnotherHandler(t *testing.T) {
	s := start(t, func(_ *served, c *Config) {
		c.Handler, c.Metrics, c.Agent, c.Snapshot, c.Ticked = http.NotFoundHandler(), nil, nil, nil, nil
	})
	if r, _ := s.get(t, "/metrics"); r.StatusCode != http.StatusNotFound || r.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%d, %v", r.StatusCode, r.Header)
	}
}

// An answer that is on its way when the agent stops comes to its end; what comes after is refused.
func TestStopFinishesAScrape(t *testing.T) {
	inside, open := make(chan struct{}), make(chan struct{})
	s := start(t, func(_ *served, c *Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(inside)
			<-open
			io.WriteString(w, "the whole page")
		})
	})
	got := make(chan string, 1)
	go func() {
		_, body := s.get(t, "/metrics")
		got <- body
	}()
	<-inside
	s.stop()
	for { // it does not listen any more
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			break
		}
		c.Close()
		time.Sleep(time.Millisecond)
	}
	close(open)
	if body := <-got; body != "the whole page" {
		t.Errorf("the scrape got %q", body)
	}
	s.end(t)
}

// One that takes longer than the grace time is cut off, and that is said: the agent does not hang.
func TestStopDoesNotHang(t *testing.T) {
	inside, hang := make(chan struct{}), make(chan struct{})
	defer close(hang)
	var said syncBuffer
	s := start(t, func(_ *served, c *Config) {
		c.Grace, c.Log = 20*time.Millisecond, slog.New(slog.NewTextHandler(&said, nil))
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(inside)
			<-hang
		})
	})
	go http.Get("http://" + s.address + "/metrics")
	<-inside
	s.stop()
	s.end(t)
	if !strings.Contains(said.String(), "cut off") {
		t.Errorf("it says:\n%s", said.String())
	}
}

// syncBuffer may be written and read at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Clients that connect and say nothing, or half a request, or read nothing, do not keep others from an answer, and are let go.
func TestSlowClients(t *testing.T) {
	before := runtime.NumGoroutine()
	s := start(t, nil)
	var slow []net.Conn
	for i := range connections / 2 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
		fmt.Fprint(c, []string{"", "GET /metrics HTTP/1.1\r\nHost: x\r\n", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"}[i%3])
	}
	if r, _ := s.get(t, "/readyz"); r.StatusCode != http.StatusOK {
		t.Errorf("beside slow clients: %d", r.StatusCode)
	}
	// The first never says a word. It is let go when the time for headers is over.
	slow[0].SetReadDeadline(time.Now().Add(3 * headerTimeout))
	if _, err := bufio.NewReader(slow[0]).ReadByte(); err != io.EOF && !errors.Is(err, net.ErrClosed) && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("who says nothing is not let go: %v", err)
	}
	for _, c := range slow {
		c.Close()
	}
	s.stop()
	s.end(t)
	settled(t, before)
}

// A storm leaves nothing behind.
func TestStormLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	s := start(t, nil)
	ok, refused := 0, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			r, body := s.get(t, "/metrics")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.StatusCode == http.StatusOK && strings.Contains(body, "datawait_build_info"):
				ok++
			case r.StatusCode == http.StatusServiceUnavailable:
				refused++
			default:
				t.Errorf("%d: %.100s", r.StatusCode, body)
			}
		})
	}
	all.Wait()
	if ok == 0 || ok+refused != 500 {
		t.Errorf("%d answered, %d told to come again", ok, refused)
	}
	s.stop()
	s.end(t)
	settled(t, before)
}

// settled waits until no more goroutines run than before.
func settled(t *testing.T, before int) {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for runtime.NumGoroutine() > before {
		if deadline.Err() != nil {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(5 * time.Millisecond)
	}
}
