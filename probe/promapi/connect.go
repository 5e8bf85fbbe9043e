package promapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/config"
)

// DefaultTimeout is how long one question may take: as long as Prometheus itself allows (prometheus, --query.timeout).
const DefaultTimeout = 2 * time.Minute

// MaxBytes bounds an answer.
const MaxBytes = 64 << 20

// maxSecret bounds a file that holds one.
const maxSecret = 64 << 10

// Options say how a server is reached. Secrets come from files and the environment, never from a command line, which everybody on a
// machine can read.
type Options struct {
	URL       string
	Config    string // file in the form of promtool's --http.config.file: basic_auth, authorization, oauth2, tls_config, http_headers, proxy_url
	TokenFile string // file with a bearer token
	Token     string // the same from the environment; TokenFile wins
	CAFile    string // file of the authorities that the server's certificate is checked against
	Tenant    string // sent as X-Scope-OrgID: whose series are asked for (Mimir, Thanos with tenancy)
	Timeout   time.Duration
}

// addressOf checks an address.
func addressOf(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		var bad *url.Error
		if errors.As(err, &bad) {
			err = bad.Err // the address itself may hold a password
		}
		return nil, fmt.Errorf("reading the server's address: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q is no address of a server, such as http://prometheus:9090", u.Redacted())
	case u.User != nil:
		return nil, ErrSecretInAddress
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// ErrSecretInAddress is the error of an address with a name and password in it.
var ErrSecretInAddress = errors.New("the server's address holds a name or password, which everybody on this machine can read there")

func (o Options) client() (*http.Client, error) {
	c, err := o.httpConfig()
	if err != nil {
		return nil, err
	}
	client, err := config.NewClientFromConfig(*c, "datawait", config.WithUserAgent("datawait"))
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	client.Transport = bounded{client.Transport}
	client.CheckRedirect = sameHost
	return client, nil
}

// httpConfig puts flags and the file together.
func (o Options) httpConfig() (*config.HTTPClientConfig, error) {
	c := &config.HTTPClientConfig{FollowRedirects: true, EnableHTTP2: true}
	if o.Config != "" {
		read, _, err := config.LoadHTTPConfigFile(o.Config)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.Config, err)
		}
		c = read
	}
	token, err := o.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		if c.BasicAuth != nil || c.Authorization != nil || c.OAuth2 != nil {
			return nil, errors.New("a token was given, and the file of the connection has credentials as well")
		}
		c.Authorization = &config.Authorization{Type: "Bearer", Credentials: config.Secret(token)}
	}
	if o.CAFile != "" {
		c.TLSConfig.CAFile = o.CAFile
	}
	if o.Tenant != "" {
		if c.HTTPHeaders == nil {
			c.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{}}
		}
		c.HTTPHeaders.Headers["X-Scope-OrgID"] = config.Header{Values: []string{o.Tenant}}
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	return c, nil
}

func (o Options) token() (string, error) {
	if o.TokenFile == "" {
		return strings.TrimSpace(o.Token), nil
	}
	f, err := os.Open(o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("reading the token: %s is empty", o.TokenFile)
	}
	return token, nil
}

// sameHost keeps credentials from being sent on to a server that another one names.
func sameHost(req *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case len(via) > 3:
		return errors.New("the server sends from one address to the next")
	case req.URL.Host != first.Host || req.URL.Scheme != first.Scheme && req.URL.Scheme != "https":
		return fmt.Errorf("the server sends on to %s, which was not asked for", req.URL.Redacted())
	}
	return nil
}

// bounded ends answers that are too long with an error.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: MaxBytes}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &tooMuch{fmt.Sprintf("the answer is longer than %d MiB", MaxBytes>>20)}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
