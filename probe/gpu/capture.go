package gpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Capture is what the libraries of a machine answered, as directives of the stand-in libraries (package standin): played back, the same
// questions get the same answers. It holds no name of a machine, user or process, and once masked no UUID.
type Capture struct {
	Directives []string       `json:"directives"` // that are of no single GPU, as `driver version=570.00.00`
	GPUs       []*CapturedGPU `json:"gpus"`
}

// CapturedGPU is one GPU of a capture.
type CapturedGPU struct {
	UUID       string            `json:"uuid"`
	Keys       map[string]string `json:"keys"`       // of its gpu directive
	Directives []string          `json:"directives"` // more of it; %d stands for its number
}

// Say adds a directive, once.
func (c *Capture) Say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !slices.Contains(c.Directives, line) {
		c.Directives = append(c.Directives, line)
	}
}

// Fail adds that a function failed.
func (c *Capture) Fail(call string, code int) { c.Say("fail call=%s code=%d", call, code) }

// GPU returns the entry of a GPU, a new one at the first call.
func (c *Capture) GPU(uuid string) *CapturedGPU {
	for _, g := range c.GPUs {
		if g.UUID == uuid {
			return g
		}
	}
	g := &CapturedGPU{UUID: uuid, Keys: map[string]string{}}
	c.GPUs = append(c.GPUs, g)
	return g
}

// Set keeps what one key of the GPU is.
func (g *CapturedGPU) Set(key string, value any) { g.Keys[key] = fmt.Sprint(value) }

// Say adds a directive of the GPU; %d in it stands for its number.
func (g *CapturedGPU) Say(directive string) {
	if !slices.Contains(g.Directives, directive) {
		g.Directives = append(g.Directives, directive)
	}
}

// Add takes what another library answered of the same machine. What both tell of a GPU is kept as it was said first.
func (c *Capture) Add(other Capture) {
	for _, line := range other.Directives {
		c.Say("%s", line)
	}
	for _, more := range other.GPUs {
		g := c.GPU(more.UUID)
		for key, value := range more.Keys {
			if _, told := g.Keys[key]; !told {
				g.Keys[key] = value
			}
		}
		for _, line := range more.Directives {
			g.Say(line)
		}
	}
}

// Scenario returns the capture as a scenario of the stand-in libraries. UUIDs are masked: they become numbers.
func (c *Capture) Scenario() string {
	var b strings.Builder
	for _, line := range c.Directives {
		b.WriteString(line + "\n")
	}
	for i, g := range c.GPUs {
		fmt.Fprintf(&b, "gpu id=%d uuid=GPU-00000000-0000-0000-0000-%012d", i, i)
		for _, key := range slices.Sorted(maps.Keys(g.Keys)) {
			fmt.Fprintf(&b, " %s=%s", key, quoted(g.Keys[key]))
		}
		b.WriteByte('\n')
		for _, line := range g.Directives {
			b.WriteString(strings.ReplaceAll(line, "%d", fmt.Sprint(i)) + "\n")
		}
	}
	return b.String()
}

// quoted keeps a value in one word; what would end the line or the quotes is left out.
func quoted(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == 0x7f {
			return -1
		}
		return r
	}, value)
	if strings.ContainsAny(value, " \t#") || value == "" {
		return `"` + value + `"`
	}
	return value
}
