package promapi

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

const fine = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"2.5"]}]}}`

// answering is a server that answers every question with the same.
func answering(t *testing.T, status int, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, o Options) (Answer, error) {
	t.Helper()
	s, err := Dial(o)
	if err != nil {
		t.Fatal(err)
	}
	return s.Ask(context.Background(), `up`, time.Unix(1000, 0))
}

func TestWhatIsAsked(t *testing.T) {
	var asked *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked = r
		fmt.Fprint(w, fine)
	}))
	defer s.Close()
	a, err := ask(t, Options{URL: s.URL + "/prometheus/", Tenant: "ml", Token: " secret\n", Timeout: 30 * time.Second})
	if err != nil || len(a.Rows) != 1 || a.Rows[0].Value != 2.5 || a.Rows[0].Labels["a"] != "b" {
		t.Fatalf("%+v, %v", a, err)
	}
	if asked.URL.Path != "/prometheus/api/v1/query" || asked.Form.Get("query") != "up" || asked.Form.Get("time") != "1000" || asked.Form.Get("timeout") != "30s" {
		t.Errorf("asked %s %v", asked.URL, asked.Form)
	}
	if h := asked.Header; h.Get("X-Scope-OrgID") != "ml" || h.Get("Authorization") != "Bearer secret" || h.Get("User-Agent") != "datawait" {
		t.Errorf("headers %v", h)
	}
}

func TestValuesThatAreNoNumbersAreLeftOut(t *testing.T) {
	s := answering(t, 200, `{"status":"success","warnings":["partial response"],"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]},{"metric":{},"value":[1,"+Inf"]},{"metric":{},"value":[1,"0"]}]}}`)
	a, err := ask(t, Options{URL: s.URL})
	if err != nil || len(a.Rows) != 1 || a.NotANumber != 2 || !slices.Equal(a.Warnings, []string{"partial response"}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// Whatever a server answers, it is rows of numbers or an error.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{fine, `{}`, `{"status":"success","data":{"resultType":"vector","result":[null]}}`, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`, `{"status":"success","data":{"resultType":"vector","result":[{"metric":null,"histogram":[1,{}]}]}}`} {
		f.Add(200, body)
	}
	f.Add(503, `{"error":"x"}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 || status >= 300 && status < 400 {
			return
		}
		a, err := (&Server{v1.NewAPI(replaying{status, body}), "a server", time.Second}).Ask(context.Background(), "up", time.Unix(1, 0))
		for _, r := range a.Rows {
			if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Labels == nil {
				t.Errorf("row %+v", r)
			}
		}
		if err != nil && len(a.Rows) > 0 {
			t.Errorf("rows beside %v", err)
		}
	})
}

// replaying is a client of whom every answer is known.
type replaying struct {
	status int
	body   string
}

func (r replaying) URL(string, map[string]string) *url.URL {
	return &url.URL{Scheme: "http", Host: "x"}
}

func (r replaying) Do(context.Context, *http.Request) (*http.Response, []byte, error) {
	return &http.Response{StatusCode: r.status}, []byte(r.body), nil
}

func TestWhatErrorsMean(t *testing.T) {
	apiError := func(kind, text string) string {
		b, err := json.Marshal(map[string]string{"status": "error", "errorType": kind, "error": text})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		name   string
		status int
		body   string
		is     error
		says   string
	}{
		{"no credentials", 401, "Unauthorized", ErrRefused, "401"},
		{"not allowed", 403, "Forbidden", ErrRefused, "403"},
		{"another service", 404, "<html>404</html>", ErrNoAPI, "404"},
		{"a page", 200, "<html>welcome</html>", ErrNoAPI, "invalid character"},
		{"no answer of the API", 200, `{"hello": 1}`, ErrNoAPI, "no result"},
		{"a proxy's redirect", 302, "", ErrNoAPI, "302"},
		{"busy", 429, apiError("too_many_requests", "too many outstanding requests"), ErrBusy, "outstanding"},
		{"Prometheus: samples", 422, apiError("execution", "query processing would load too many samples into memory in query execution"), ErrTooMuch, "too many samples"},
		{"Prometheus: time", 503, apiError("timeout", "query timed out in expression evaluation"), ErrTooMuch, "timed out"},
		{"Mimir: chunks", 422, apiError("execution", "the query exceeded the maximum number of chunks (limit: 2000000 chunks) (err-mimir-max-chunks-per-query)"), ErrTooMuch, "err-mimir"},
		{"Thanos: series", 422, apiError("execution", "expanding series: exceeded series limit"), ErrTooMuch, "limit"},
		{"VictoriaMetrics", 422, apiError("422", "cannot select more than -search.maxSamplesPerQuery=1000000000 samples"), ErrTooMuch, "maxSamplesPerQuery"},
		{"a proxy's patience", 504, "gateway timeout", ErrTooMuch, "504"},
		{"a bad question", 400, apiError("bad_data", "parse error: unexpected character"), nil, "parse error"},
		{"a broken server", 500, apiError("internal", "disk on fire"), nil, "disk on fire"},
		{"what would colour a terminal", 400, apiError("bad_data", "\x1b[31mred\u202e"), nil, "[31mred"},
	} {
		s := answering(t, c.status, c.body)
		_, err := ask(t, Options{URL: s.URL})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, other := range []error{ErrRefused, ErrNoAPI, ErrBusy, ErrTooMuch} {
			if other != c.is && errors.Is(err, other) {
				t.Errorf("%s: also %v", c.name, other)
			}
		}
		if strings.ContainsAny(err.Error(), "\x1b\u202e\n") {
			t.Errorf("%s: %q", c.name, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[`)
		block := []byte(strings.Repeat(" ", 1<<20))
		for range MaxBytes>>20 + 8 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	if _, err := ask(t, Options{URL: s.URL}); !errors.Is(err, ErrTooMuch) || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("%v", err)
	}
	row := `{"metric":{},"value":[1,"1"]},`
	s2 := answering(t, 200, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Repeat(row, MaxRows)+strings.TrimSuffix(row, ",")+`]}}`)
	if _, err := ask(t, Options{URL: s2.URL}); !errors.Is(err, ErrTooMuch) || !strings.Contains(err.Error(), "rows") {
		t.Errorf("%v", err)
	}
}

func TestASlowServerIsAskedLess(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer s.Close()
	defer close(stop)
	if _, err := ask(t, Options{URL: s.URL, Timeout: 20 * time.Millisecond}); !errors.Is(err, ErrTooMuch) || !strings.Contains(err.Error(), "no answer in 20ms") {
		t.Errorf("%v", err)
	}
	client, err := Dial(Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.Ask(ctx, "up", time.Unix(1, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("who asked has gone: %v", err)
	}
}

// Credentials go to the server that was named, and to no other.
func TestCredentialsStayWithTheServer(t *testing.T) {
	leaked := false
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leaked = true; fmt.Fprint(w, fine) }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	if _, err := ask(t, Options{URL: s.URL, Token: "secret"}); err == nil || leaked || !strings.Contains(err.Error(), "sends on to") {
		t.Errorf("leaked: %t, error %v", leaked, err)
	}
}

func TestConnections(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user+password != "anna"+"pw" && r.Header.Get("Authorization") != "Bearer tok" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, fine)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	ca := file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	file("pw", "pw")
	basic := file("http.yml", "basic_auth: {username: anna, password_file: pw}\nhttp_headers: {X-Extra: {values: [1]}}\ntls_config: {ca_file: ca.pem}\n")
	for name, c := range map[string]struct {
		o  Options
		is string
	}{
		"a file":               {Options{URL: s.URL, Config: basic}, ""},
		"a token and a CA":     {Options{URL: s.URL, TokenFile: file("token", "tok\n"), Token: "wrong", CAFile: ca}, ""},
		"no CA":                {Options{URL: s.URL, Token: "tok"}, "certificate"},
		"no credentials":       {Options{URL: s.URL, CAFile: ca}, "refuses"},
		"nobody there":         {Options{URL: "http://127.0.0.1:1"}, "refused"},
		"a file that is wrong": {Options{URL: s.URL, Config: file("bad.yml", "basic_auth: [")}, "reading"},
		"an empty token":       {Options{URL: s.URL, TokenFile: file("empty", " \n")}, "is empty"},
		"no such token":        {Options{URL: s.URL, TokenFile: filepath.Join(dir, "none")}, "reading the token"},
		"two credentials":      {Options{URL: s.URL, Config: basic, Token: "tok"}, "credentials as well"},
		"a password":           {Options{URL: "http://anna:pw@x"}, "everybody on this machine"},
		"no address":           {Options{URL: "prometheus:9090"}, "no address of a server"},
		"a broken address":     {Options{URL: "http://anna:secret@x:port"}, "reading the server's address"},
	} {
		server, err := Dial(c.o)
		if err == nil {
			_, err = server.Ask(context.Background(), "up", time.Unix(1, 0))
		}
		if (err == nil) != (c.is == "") || err != nil && !strings.Contains(err.Error(), c.is) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
}
