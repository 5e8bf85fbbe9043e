// Package promserver runs a real Prometheus on a loopback port, for tests: with a history that is known, or scraping.
//
// It fails where prometheus or promtool is missing: what it is for would not be tested.
package promserver

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Server is a running Prometheus.
type Server struct {
	URL  string
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan error
}

// Start runs a server with its data below dir. history is what it is to know, in OpenMetrics' text format with timestamps in seconds
// and an end (prometheus.io, "Backfilling from OpenMetrics format"); flags are added to its command line.
func Start(dir string, history []byte, flags ...string) (*Server, error) {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	if len(history) > 0 {
		if err := backfill(dir, data, history); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {}\n"), 0o644); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s := &Server{URL: "http://" + address, log: &bytes.Buffer{}, done: make(chan error, 1)}
	s.cmd = exec.Command("prometheus", append([]string{"--config.file=" + config, "--storage.tsdb.path=" + data, "--storage.tsdb.retention.time=100y",
		"--web.listen-address=" + address, "--log.level=warn"}, flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting prometheus, which this needs: %w", err)
	}
	go func() { s.done <- s.cmd.Wait() }()
	if err := s.ready(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// backfill writes blocks of the history.
func backfill(dir, data string, history []byte) error {
	file := filepath.Join(dir, "history.om")
	if err := os.WriteFile(file, history, 0o644); err != nil {
		return err
	}
	defer os.Remove(file)
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=744h", file, data).CombinedOutput(); err != nil {
		return fmt.Errorf("backfilling with promtool, which this needs: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until the server answers.
func (s *Server) ready() error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-s.done:
			s.done <- err
			return fmt.Errorf("prometheus ended: %w: %s", err, s.log.String())
		default:
		}
		if resp, err := http.Get(s.URL + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.New("prometheus did not become ready in a minute")
}

// Stop ends the server and waits for it.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.done
}
