// Package demo tells the case study with real mechanisms: it serves a retailer's catalogue from an object store inside this
// process, trains on it as the catalogue grew (a photo and a record per product), preprocesses once into shards, and trains
// again. Both runs are diagnosed like any other job; nothing is scripted but the latency of the store and the device.
package demo

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/cmd/datawait/internal/objectstore"
	"github.com/datawait/datawait/examples/retail"
	"github.com/datawait/datawait/report/terminal"
)

// The catalogue and the store. 1200 products are 2400 objects; the latency is that of small objects in a remote store.
const (
	products     = 1200
	photoPixels  = 48
	features     = 64
	perShard     = 60
	batch        = 8
	firstByte    = 9500 * time.Microsecond
	latencySigma = 0.25
)

// Options say how to run the demonstration.
type Options struct {
	Out     string // folder for before/, after/ and the comparison
	Python  string
	Torch   bool          // use PyTorch's loader where that Python has it
	Budget  time.Duration // of each of the two diagnoses, preparation apart
	Stdout  io.Writer
	Screen  terminal.Options // how stdout is laid out
	Stderr  io.Writer
	Observe Diagnose
}

// Diagnose runs `datawait diagnose` on one command within this process and returns what the report says.
type Diagnose func(ctx context.Context, job Job) (*analysis.Result, error)

// Job is one of the two runs.
type Job struct {
	Name    string
	Command []string
	Env     []string
	Out     string
	Budget  time.Duration
}

// Run tells the story and prints both runs side by side.
func Run(ctx context.Context, o Options) error {
	kit, err := newKit(ctx, o)
	if err != nil {
		return err
	}
	defer kit.close()
	kit.say("before: a photo and a feature record per product, decoded again in every epoch; 2 workers, 1 batch ahead each")
	before, err := kit.observe(ctx, "before", "--data", "objects", "--prefetch", "1")
	if err != nil {
		return err
	}
	kit.say("repairing: decode and join once, pack %d products to a shard, cache shards locally, 4 batches ahead", perShard)
	repair, err := kit.prepare(ctx)
	if err != nil {
		return err
	}
	after, err := kit.observe(ctx, "after", "--data", "shards", "--prefetch", "4",
		"--per-shard", strconv.Itoa(perShard), "--cache", filepath.Join(kit.work, "cache"))
	if err != nil {
		return err
	}
	return o.end(before, after, repair)
}

// kit is what both runs share.
type kit struct {
	Options
	work   string // scratch folder with the Python files
	store  *objectstore.Store
	python pythonKind
}

// run is one diagnosed training with what the store saw meanwhile.
type run struct {
	result   *analysis.Result
	requests int64
	bytes    int64
}

func newKit(ctx context.Context, o Options) (*kit, error) {
	python, err := inspect(ctx, o.Python, o.Torch)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "datawait-demo-")
	if err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	k := &kit{Options: o, work: work, python: python}
	if err := k.unpack(); err != nil {
		k.close()
		return nil, err
	}
	k.say("%s", python)
	catalog := objectstore.NewCatalog(products, photoPixels, features)
	if err := catalog.Prepare(python.photoSuffix()); err != nil {
		k.close()
		return nil, fmt.Errorf("making the catalogue: %w", err)
	}
	k.store, err = objectstore.Serve(catalog, objectstore.Latency{Median: firstByte, Sigma: latencySigma})
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *kit) close() {
	if k.store != nil {
		k.store.Close()
	}
	os.RemoveAll(k.work)
}

func (k *kit) say(format string, a ...any) { fmt.Fprintf(k.Stderr, "demo: "+format+"\n", a...) }

// unpack writes the Python files of the example and makes the cache folder.
func (k *kit) unpack() error {
	names, err := fs.Glob(retail.Files, "*.py")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := retail.Files.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(k.work, name), text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", name, err)
		}
	}
	return os.Mkdir(filepath.Join(k.work, "cache"), 0o700)
}

// observe diagnoses one training on the store.
func (k *kit) observe(ctx context.Context, name string, arguments ...string) (run, error) {
	command := append([]string{k.Python, filepath.Join(k.work, "train.py"), "--store", k.store.URL(),
		"--products", strconv.Itoa(products), "--batch", strconv.Itoa(batch), "--workers", "2"}, arguments...)
	requests, bytes := k.store.Requests(), k.store.Bytes()
	result, err := k.Observe(ctx, Job{Name: name, Command: command, Env: k.python.env(),
		Out: filepath.Join(k.Out, name), Budget: k.Budget})
	if err != nil {
		return run{}, fmt.Errorf("the run %q: %w", name, err)
	}
	return run{result, k.store.Requests() - requests, k.store.Bytes() - bytes}, nil
}

// prepare preprocesses the catalogue once and returns what that took.
func (k *kit) prepare(ctx context.Context) (repair, error) {
	requests, begin := k.store.Requests(), time.Now()
	command := exec.CommandContext(ctx, k.Python, filepath.Join(k.work, "prepare.py"), "--store", k.store.URL(),
		"--products", strconv.Itoa(products), "--per-shard", strconv.Itoa(perShard))
	command.Env = append(os.Environ(), k.python.env()...)
	if output, err := command.CombinedOutput(); err != nil {
		return repair{}, fmt.Errorf("preprocessing the catalogue: %w\n%s", err, output)
	}
	return repair{requests: k.store.Requests() - requests, took: time.Since(begin)}, nil
}
