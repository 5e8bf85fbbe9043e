package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/gpu"
)

// CaptureCommand is the hidden command in which datawait, run again as a child, asks one library everything.
const CaptureCommand = "gpu-capture"

// captureHead explains a capture to whoever is sent one.
const captureHead = `# What NVIDIA's libraries answered to datawait %s on one machine (%s), as a scenario of datawait's stand-in libraries.
# UUIDs, process ids and names of the machine are masked. Findings that go with it stand at the end, as comments.
`

// Capture asks the libraries of this machine what datawait's sources ask and returns the answers as a scenario, and beside it what
// went wrong. It never fails: a library that is missing, or crashes, is an answer.
func Capture(ctx context.Context, o Options, d Document) []byte {
	var all gpu.Capture
	var troubles []string
	for _, library := range [][]string{{"nvml"}, {"dcgm", "--address", o.GPU.Address}} {
		c, err := o.captured(ctx, library)
		if err != nil {
			troubles = append(troubles, fmt.Sprintf("%s: %v", library[0], err))
		}
		all.Add(c)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, captureHead, d.Datawait, d.Platform)
	b.WriteString(all.Scenario())
	said := d
	said.Machine = "masked"
	if text, err := json.MarshalIndent(said, "", "  "); err == nil {
		troubles = append(troubles, string(text))
	}
	comment(&b, mask(strings.Join(troubles, "\n"), d))
	return b.Bytes()
}

// captured runs one library's capture in a process of its own.
func (o Options) captured(ctx context.Context, library []string) (c gpu.Capture, err error) {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	self, err := o.self()
	if err != nil {
		return c, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{CaptureCommand, "--library"}, library...)...)
	cmd.WaitDelay, cmd.Env = time.Second, gpu.LazyEnvironment()
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return c, fmt.Errorf("%w: %s", err, complaint.String())
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, err
	}
	if complaint.Len() > 0 {
		err = fmt.Errorf("%s", strings.TrimSpace(complaint.String()))
	}
	return c, err
}

// self is the binary to run again.
func (o Options) self() (string, error) {
	if o.Self != "" {
		return o.Self, nil
	}
	return os.Executable()
}

// own is what names a run of datawait: /dev/shm/datawait-<uid>/run-<pid>-<start>-<namespace>.
var own = regexp.MustCompile(`datawait-\d+/run-[0-9-]+`)

// interpreters are paths of a Python, which may lead through somebody's folders.
var interpreters = regexp.MustCompile(`(/[^\s"()]+)+/(python[0-9.]*)`)

var uuid = regexp.MustCompile(`(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// mask replaces what names this machine or its user, wherever it stands.
func mask(text string, d Document) string {
	var known []string
	text = uuid.ReplaceAllStringFunc(text, func(found string) string {
		at := slices.Index(known, found)
		if at < 0 {
			at = len(known)
			known = append(known, found)
		}
		return fmt.Sprintf("%s-%d", found[:3], at)
	})
	text = own.ReplaceAllString(text, "datawait-<uid>/run-<pid>")
	text = interpreters.ReplaceAllString(text, "<path>/$2")
	for i, name := range []string{d.Machine, os.Getenv("HOME"), os.Getenv("USER"), os.Getenv("LOGNAME")} {
		if len(name) > 2 && name != "root" && name != "/root" {
			text = strings.ReplaceAll(text, name, []string{"<machine>", "<home>", "<user>", "<user>"}[i])
		}
	}
	return text
}

func comment(b *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("# " + strings.TrimRight(line, "\n") + "\n")
	}
}
