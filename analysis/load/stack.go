package load

import (
	"slices"

	"github.com/datawait/datawait/analysis/stage"
	"github.com/datawait/datawait/probe/recording"
)

// Bounds of what one stream may claim; the hook keeps to 512 calls and 64 transforms.
const (
	mostCalls      = 4096
	mostTransforms = 256
	longestName    = 300
)

// stackFold keeps the newest of the sums that a stream tells of stacks and transforms.
type stackFold struct {
	stacks     map[counted]recording.Stack
	transforms map[counted]recording.Transform
	sampler    recording.Sampler
}

// counted is a call or a transform of one loader.
type counted struct {
	loader uint16
	number uint32
}

// take reports whether the record is one of these, and good.
func (s *stackFold) take(rec *recording.Record) bool {
	switch rec.Kind() {
	case recording.KindStack:
		v := rec.Stack()
		if _, ok := at(v.T); !ok || v.On > recording.Latest || v.Off > recording.Latest || v.Unclear > recording.Latest {
			return false
		}
		if s.stacks == nil {
			s.stacks = map[counted]recording.Stack{}
		}
		return keepNewest(s.stacks, counted{v.Ref, v.Call}, v, mostCalls, func(old recording.Stack) bool { return old.T <= v.T })
	case recording.KindTransform:
		v := rec.Transform()
		if _, ok := at(v.T); !ok || v.NS > recording.Latest || v.Calls > recording.Latest {
			return false
		}
		if s.transforms == nil {
			s.transforms = map[counted]recording.Transform{}
		}
		return keepNewest(s.transforms, counted{v.Ref, v.Transform}, v, mostTransforms, func(old recording.Transform) bool { return old.T <= v.T })
	case recording.KindSampler:
		v := rec.Sampler()
		if _, ok := at(v.T); !ok || v.Looks > recording.Latest || v.Outside > v.Looks || v.Wall > recording.Latest {
			return false
		}
		if v.CPU > recording.Latest { // not read this time: the last reading and its time stay
			v.CPU, v.Wall = s.sampler.CPU, s.sampler.Wall
		}
		s.sampler = v
	}
	return true
}

func keepNewest[T any](all map[counted]T, key counted, v T, most int, older func(T) bool) bool {
	old, known := all[key]
	if !known && len(all) >= most {
		return false
	}
	if !known || older(old) {
		all[key] = v
	}
	return true
}

// tree adds up what the stream tells of one loader; nil where it was never looked at.
func (s *stackFold) tree(loader uint16, notes *recording.Notes) *stage.Tree {
	t := &stage.Tree{}
	paths := pathsOf(notes)
	for key, v := range s.stacks {
		if key.loader == loader {
			t.Add(paths.of(key.number), float64(v.On)/1e9, float64(v.Off)/1e9, float64(v.Unclear)/1e9, int(v.Samples))
		}
	}
	names := map[uint32]string{}
	for _, n := range notes.Transforms {
		for i, name := range n.Names {
			if i < mostTransforms && n.First < mostTransforms {
				names[n.First+uint32(i)] = cut(name)
			}
		}
	}
	for key, v := range s.transforms {
		if name := names[key.number]; key.loader == loader && name != "" {
			t.Time(name, float64(v.Calls), float64(v.NS)/1e9)
		}
	}
	if len(t.Root.Below) == 0 && t.Root.Samples == 0 && len(t.Transforms) == 0 {
		return nil
	}
	t.Outside, t.Looks, t.Processes = t.Outside+s.sampler.Outside, s.sampler.Looks, 1
	t.CPU, t.Wall = float64(s.sampler.CPU)/1e9, float64(s.sampler.Wall)/1e9
	return t
}

// look takes what was seen of one worker. Of two streams of its ring the one that was read further says all: they are sums.
func (l *Loader) look(of identity, t *stage.Tree) {
	if t == nil {
		return
	}
	if i, known := l.looked[of]; known {
		if t.Looks > l.Stacks[i].Looks {
			l.Stacks[i] = t
		}
		return
	}
	if l.looked == nil {
		l.looked = map[identity]int{}
	}
	l.looked[of] = len(l.Stacks)
	l.Stacks = append(l.Stacks, t)
}

// joinStacks gives what was seen of a training process to the loaders whose batches it built.
func (r *Rank) joinStacks(s *stackFold) {
	loaders := map[uint16]bool{}
	for key := range s.stacks {
		loaders[key.loader] = true
	}
	for key := range s.transforms {
		loaders[key.loader] = true
	}
	for id := range loaders {
		l := r.byID[id]
		if t := s.tree(id, &r.Notes); l != nil && t != nil {
			l.Stacks = append(l.Stacks, t)
		}
	}
}

// during counts the batches that were built until the stream's sums were written last: its exact times are of those.
func (s *stackFold) during(t *stage.Tree, batches []Batch, notes *recording.Notes) {
	if t == nil || slices.ContainsFunc(notes.Lost, func(n recording.LostNote) bool { return n.Records+n.Torn > 0 }) {
		return
	}
	for i := range batches {
		if b := &batches[i]; b.End <= int64(s.sampler.T) {
			t.Batches++
			t.Seconds += float64(b.End-b.Begin) / 1e9
		}
	}
}

// paths are the calls of a stream, taken apart.
type paths struct {
	names map[uint32]string
	calls map[uint32][2]uint32
}

func pathsOf(notes *recording.Notes) paths {
	p := paths{map[uint32]string{}, map[uint32][2]uint32{}}
	for _, n := range notes.Functions {
		for i, name := range n.Names {
			if len(p.names) < mostCalls && n.First < recording.Unknown32-mostCalls && i < mostCalls {
				p.names[n.First+uint32(i)] = cut(name)
			}
		}
	}
	for _, n := range notes.Calls {
		for i, call := range n.Calls {
			number := n.First + uint32(i)
			if call[0] < number && len(p.calls) < mostCalls { // a call comes from an earlier one: no circle
				p.calls[number] = call
			}
		}
	}
	return p
}

func cut(name string) string { return name[:min(len(name), longestName)] }

// unnamed stands for a call of which the note was lost.
const unnamed = "?:?"

// of returns the path of a call, from the root down.
func (p paths) of(call uint32) (path []string) {
	for depth := 0; call != 0 && depth < 128; depth++ {
		pair, ok := p.calls[call]
		if !ok {
			path = append(path, unnamed)
			break
		}
		name := p.names[pair[1]]
		if name == "" {
			name = unnamed
		}
		path = append(path, name)
		call = pair[0]
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}
