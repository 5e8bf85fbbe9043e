package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/netutil"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/exporters/prometheus"
)

// Config is what is answered, and where.
type Config struct {
	Listen    string // host:port
	WebConfig string // file of exporter-toolkit: TLS, passwords, headers; "" = none

	Metrics  http.Handler
	Agent    func() prometheus.Agent
	Snapshot func() *live.Snapshot // nil while there is none
	Ticked   func() time.Time      // when the agent's loop came round last; zero = not yet
	Within   time.Duration         // the longest a living loop takes to come round; 0 = 30 s
	Grace    time.Duration         // that answers have to come to their end when the agent stops; 0 = 5 s

	Handler http.Handler // what is shown instead of all that, with the same care; nil = that

	Listening func(net.Addr) // is told once there is a socket; may be nil
	Log       *slog.Logger   // nil = slog.Default()
}

// DefaultWithin is longer than anything the loop may wait for: GPU engines are waited for in a process of their own.
const DefaultWithin = 30 * time.Second

// Whoever connects and says nothing, or reads nothing, is let go. Files that are open, sockets among them, are bounded for a process,
// and probes open files.
const (
	connections   = 256
	headerTimeout = 5 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute // above the usual intervals of scrapes, so that a connection is kept from one to the next
	headerBytes   = 16 << 10
)

// ErrPortInUse is that somebody else listens there.
var ErrPortInUse = errors.New("address already in use")

// ErrConfig is that the file of --web-config is not one, or names certificates that cannot be used.
var ErrConfig = errors.New("web configuration")

// Hint says what to do about an error of Serve, "" where that is not known.
func Hint(err error) string {
	switch {
	case errors.Is(err, ErrPortInUse):
		return "another datawait serve may be running on this machine; stop it, or choose another port with --listen"
	case errors.Is(err, ErrConfig):
		return "--web-config takes a file of Prometheus' exporter-toolkit: tls_server_config, basic_auth_users with bcrypt hashes, http_server_config"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 need a privilege; choose another with --listen"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "--listen names an address that this machine does not have; 0.0.0.0 or [::] is every one"
	}
	return ""
}

// Check says before anything is started what is wrong with the file of --web-config.
func Check(file string) error {
	if err := toolkit.Validate(file); err != nil {
		return fmt.Errorf("reading the %w %s: %w", ErrConfig, file, err)
	}
	return nil
}

// Serve answers until ctx ends, and lets answers that are on their way come to their end.
func Serve(ctx context.Context, c Config) error {
	c.Log, c.Within, c.Grace = cmp.Or(c.Log, slog.Default()), cmp.Or(c.Within, DefaultWithin), cmp.Or(c.Grace, 5*time.Second)
	if err := Check(c.WebConfig); err != nil {
		return err
	}
	listener, err := listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	if c.Listening != nil {
		c.Listening(listener.Addr())
	}
	return c.answer(ctx, netutil.LimitListener(listener, connections))
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listening on %s: %w", address, ErrPortInUse)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w", address, cause(err))
	}
	return l, nil
}

// cause leaves out what the sentence says already: "listen tcp 10.0.0.1:80: bind:".
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// answer serves a socket until ctx ends.
func (c Config) answer(ctx context.Context, l net.Listener) error {
	shown := c.Handler
	if shown == nil {
		shown = c.handler(time.Now())
	}
	shown = guarded(shown)
	server := &http.Server{Handler: shown, ReadHeaderTimeout: headerTimeout, ReadTimeout: 2 * headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn)}
	ended := make(chan error, 1)
	go func() { ended <- toolkit.Serve(l, server, &toolkit.FlagConfig{WebConfigFile: &c.WebConfig}, c.Log) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Grace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		c.Log.Warn("an answer was not finished in time and is cut off", "grace", c.Grace)
		server.Close()
	}
	<-ended
	return nil
}
