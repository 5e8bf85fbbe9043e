package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/exporters/prometheus"
)

// served is an agent that answers while a test runs.
type served struct {
	address string
	stop    context.CancelFunc
	ended   chan error

	agent    prometheus.Agent
	snapshot *live.Snapshot
	ticked   atomic.Int64 // Unix ns; 0 = never
}

// config is that of an agent all of whose sources deliver.
func (s *served) config() Config {
	s.agent = prometheus.Agent{Version: "1.2.3", Sources: []prometheus.Source{{Name: "gpu", Up: true}, {Name: "spool", Up: true}}}
	s.snapshot = &live.Snapshot{At: 1}
	s.ticked.Store(time.Now().UnixNano())
	collector := prometheus.New(prometheus.Options{Snapshot: func() *live.Snapshot { return s.snapshot }, Agent: func() prometheus.Agent { return s.agent },
		Unix: func(mono uint64) float64 { return float64(mono) / 1e9 }, Log: slog.New(slog.DiscardHandler)})
	return Config{Listen: "127.0.0.1:0", Metrics: collector.Handler(), Agent: func() prometheus.Agent { return s.agent }, Snapshot: func() *live.Snapshot { return s.snapshot },
		Ticked: s.lastTick, Log: slog.New(slog.DiscardHandler)}
}

func (s *served) lastTick() time.Time {
	if ns := s.ticked.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// start serves until the test ends.
func start(t *testing.T, change func(*served, *Config)) *served {
	t.Helper()
	s := &served{ended: make(chan error, 1)}
	c := s.config()
	listening := make(chan net.Addr, 1)
	c.Listening = func(a net.Addr) { listening <- a }
	if change != nil {
		change(s, &c)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.ended <- Serve(ctx, c) }()
	select {
	case a := <-listening:
		s.address = a.String()
	case err := <-s.ended:
		t.Fatal("it does not serve:", err)
	case <-time.After(20 * time.Second):
		t.Fatal("it does not listen")
	}
	t.Cleanup(func() {
		stop()
		s.end(t)
	})
	return s
}

// end waits until it has stopped.
func (s *served) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error("it ended with:", err)
		}
		s.ended <- nil // for whoever asks again
	case <-time.After(20 * time.Second):
		t.Fatal("it does not stop")
	}
}

// get asks for a path and returns the answer and its text.
func (s *served) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	return fetch(t, client, "http://"+s.address+path)
}

func fetch(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(body)
}

// certificate writes a key and a certificate of 127.0.0.1 and returns who trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return pool
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// over returns a client that speaks TLS with whom the pool trusts.
func over(pool *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}, Timeout: 20 * time.Second}
}
