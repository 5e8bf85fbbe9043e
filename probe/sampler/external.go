package sampler

import "github.com/datawait/datawait/probe/recording"

// External is the health of something that is not sampled here: the agent itself, or a child that delivers by itself.
type External struct{ source *source }

// Usage tells what a process costs: CPU time in ns since it started, and bytes in RAM; Unknown64 where it could not be read.
type Usage func() (cpu, rss uint64, err error)

// Watch records the health of a process from now on. usage is asked each time health is written. A source that delivers is
// well only while something comes; one that does not, while it can be asked.
func (s *Sampler) Watch(name string, delivers bool, usage Usage) *External {
	src := &source{Probe: Probe{Name: name}, usage: usage, delivers: delivers, cpu: recording.Unknown64}
	src.next = never
	s.add(src)
	src.next = never
	return &External{src}
}

// never is the next tick of what has none.
const never = 1<<64 - 1

// Delivered counts n samples that came. Like Failed it belongs to the loop's goroutine: call it from a submitted function.
func (e *External) Delivered(n int) {
	e.source.window.samples += uint32(n)
	e.source.state, e.source.why = working, ""
}

// Failed counts a failure, such as the death of the child.
func (e *External) Failed(err error) { e.source.fail(err) }
