// Package objectstore is a small object store over HTTP for the demonstration: it serves a retailer's catalogue with the
// latency of a remote store, keeps what is put into it, and counts what was asked.
//
// The latency is the only thing made up here, and it is real to whoever waits for it: every answer is held back by a draw
// from a log-normal distribution, as first-byte times of object stores are distributed. Requests, bytes and objects are real.
package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Latency is the time to the first byte of an answer: log-normal with this median and shape.
type Latency struct {
	Median time.Duration
	Sigma  float64 // standard deviation of the logarithm; 0 makes every answer take the median
}

// draw returns one waiting time, at most eight medians: a client library would have retried by then.
func (l Latency) draw() time.Duration {
	d := float64(l.Median) * math.Exp(l.Sigma*rand.NormFloat64())
	return time.Duration(math.Min(d, 8*float64(l.Median)))
}

// Store is a running object store. Its methods may be called from any goroutine.
type Store struct {
	latency  Latency
	catalog  *Catalog
	server   *http.Server
	address  string
	requests atomic.Int64
	bytes    atomic.Int64

	mu  sync.RWMutex
	put map[string][]byte
}

// maxObject bounds one uploaded object, in bytes.
const maxObject = 256 << 20

// Serve starts a store on a free loopback port.
func Serve(catalog *Catalog, latency Latency) (*Store, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the object store: %w", err)
	}
	s := &Store{latency: latency, catalog: catalog, put: map[string][]byte{}, address: listener.Addr().String()}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go s.server.Serve(listener) // ends with Close; requests under way see the error
	return s, nil
}

// URL returns where the store listens.
func (s *Store) URL() string { return "http://" + s.address }

// Close stops the store.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return s.server.Close()
	}
	return nil
}

// Requests returns how many requests were answered so far.
func (s *Store) Requests() int64 { return s.requests.Load() }

// Bytes returns how many bytes of objects were sent so far.
func (s *Store) Bytes() int64 { return s.bytes.Load() }

// ServeHTTP answers GET and PUT of whole objects.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	time.Sleep(s.latency.draw())
	key := strings.TrimPrefix(r.URL.Path, "/")
	switch r.Method {
	case http.MethodGet:
		s.get(w, key)
	case http.MethodPut:
		s.keep(w, r, key)
	default:
		http.Error(w, "only GET and PUT are served", http.StatusMethodNotAllowed)
	}
}

func (s *Store) get(w http.ResponseWriter, key string) {
	s.mu.RLock()
	body, found := s.put[key]
	s.mu.RUnlock()
	if !found {
		var err error
		if body, err = s.catalog.Object(key); errors.Is(err, errNoObject) {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		} else if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	n, _ := w.Write(body) // a client that hangs up is its own affair
	s.bytes.Add(int64(n))
}

func (s *Store) keep(w http.ResponseWriter, r *http.Request, key string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObject))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.put[key] = body
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
