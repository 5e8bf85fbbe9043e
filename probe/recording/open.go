package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Recording is what one run left on disk: one or more nodes.
type Recording struct {
	nodes []Node
}

// Node is one node's part of a recording.
type Node struct {
	Name string // its folder's name
	Reader
}

// Nodes returns the nodes in the order of their names.
func (r *Recording) Nodes() []Node { return r.nodes }

// Readers returns the nodes as analysis takes them.
func (r *Recording) Readers() []Reader {
	readers := make([]Reader, len(r.nodes))
	for i, n := range r.nodes {
		readers[i] = n.Reader
	}
	return readers
}

// maxManifest bounds the size of a manifest a reader accepts, in bytes.
const maxManifest = 4 << 20

// Open reads a recording: a folder with node-* folders in it, one such folder, or a spool folder full of rings. It returns
// [ErrNotRecording] for anything else and [ErrNewer] for what a later version wrote. It holds no file open.
func Open(dir string) (*Recording, error) {
	r, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening recording %s: %w", dir, err)
	}
	return r, nil
}

func open(dir string) (*Recording, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrNotRecording)
	}
	r := &Recording{}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), nodePrefix) {
			if err := r.addNode(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, ErrNotRecording) {
				return nil, err
			}
		}
	}
	if len(r.nodes) > 0 {
		return r, nil
	}
	return r, r.addNode(dir)
}

// addNode adds the node in this folder, or returns ErrNotRecording.
func (r *Recording) addNode(dir string) error {
	reader, err := openNode(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	r.nodes = append(r.nodes, Node{Name: filepath.Base(dir), Reader: reader})
	return nil
}

// openNode opens segments, with a manifest or without one where the agent was killed, or else rings.
func openNode(dir string) (Reader, error) {
	manifest, state, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	paths, err := segmentFiles(dir)
	if err != nil {
		return nil, err
	}
	if len(paths) > 0 || state == manifestGood {
		s, err := openSegments(manifest, paths)
		if err == nil && state == manifestBad {
			s.found.BadFiles++
		}
		return s, err
	}
	return openSpool(dir)
}

type manifestState int

const (
	manifestNone manifestState = iota
	manifestBad
	manifestGood
)

// readManifest reads the manifest if there is one. One that cannot be understood is bad, not an error: the segments beside
// it may be good. Only a later format is refused.
func readManifest(dir string) (Manifest, manifestState, error) {
	f, err := OpenRegular(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, manifestNone, nil
	}
	if err != nil {
		return Manifest{}, manifestBad, nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return Manifest{}, manifestNone, fmt.Errorf("reading manifest: %w", err)
	}
	m, err := parseManifest(b)
	if errors.Is(err, ErrNewer) {
		return Manifest{}, manifestBad, err
	}
	if err != nil {
		return Manifest{}, manifestBad, nil
	}
	return m, manifestGood, nil
}

// parseManifest decodes a manifest; a field of the wrong type stays unknown.
func parseManifest(b []byte) (m Manifest, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return Manifest{}, fmt.Errorf("decoding manifest: %w", err)
	}
	var bad uint64
	decodeFields(reflect.ValueOf(&m).Elem(), fields, &bad)
	if err := checkFormat(m.Format); err != nil {
		return Manifest{}, err
	}
	return m, nil
}
