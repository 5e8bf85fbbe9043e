package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// usual is where dcgm-exporter listens (pkg/cmd/app.go, --address :9400), on this machine alone: nobody else's is asked unless a person
// names it.
var usual = []string{"http://127.0.0.1:9400/metrics", "http://[::1]:9400/metrics"}

// maxWait is for a whole page. An exporter whose host engine hangs holds a scrape for a minute, and lets them pile up.
const maxWait = 5 * time.Second

// Address makes the URL of a page out of what a person types: a URL, or host:port.
func Address(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is no URL", recording.Name(text))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%q is no URL of a page: http://HOST:9400/metrics", recording.Name(text))
	case u.User != nil: // it would stand in the recording, and in the list of processes
		return "", errors.New("an exporter's address takes no password")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	u.Fragment = ""
	return u.String(), nil
}

// endpoint is one exporter.
type endpoint struct {
	url    string
	client *http.Client
}

func newEndpoint(url string) *endpoint {
	return &endpoint{url, &http.Client{
		Timeout: maxWait,
		// Neither a proxy nor a redirect may turn the request into one to somebody else.
		Transport:     &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10, DialContext: (&net.Dialer{Timeout: maxWait}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// get reads the page.
func (e *endpoint) get(ctx context.Context) (*page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the exporter: %w", err)
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", "datawait")
	response, err := e.client.Do(request)
	if err != nil {
		return nil, e.unreachable(err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		return nil, fmt.Errorf("the exporter at %s sends to another address (%d), and is not followed", e.url, response.StatusCode)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the exporter at %s answers %d %s", e.url, response.StatusCode, http.StatusText(response.StatusCode))
	}
	p, err := read(response.Body)
	switch {
	case err != nil && timedOut(err):
		return nil, e.slow()
	case err != nil:
		return nil, fmt.Errorf("scraping %s: %w", e.url, err)
	case p.empty:
		return nil, fmt.Errorf("the exporter at %s calls itself healthy, and its page is empty: dcgm-exporter does so for ever if its host engine was not there when it started; restart it", e.url)
	case len(p.gpus) == 0:
		return nil, fmt.Errorf("the page at %s has no metric of a GPU: it is no dcgm-exporter's, or its list of counters has none of them", e.url)
	}
	return p, nil
}

var errNobody = errors.New("no exporter listens")

func (e *endpoint) unreachable(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s", errNobody, e.url)
	case timedOut(err):
		return e.slow()
	}
	return fmt.Errorf("asking the exporter at %s: %s", e.url, recording.Name(err.Error()))
}

func (e *endpoint) slow() error {
	return fmt.Errorf("the exporter at %s does not answer within %v: its host engine may hang", e.url, maxWait)
}

func timedOut(err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

func (e *endpoint) close() { e.client.CloseIdleConnections() }
