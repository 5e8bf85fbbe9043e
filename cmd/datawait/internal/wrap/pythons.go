package wrap

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
)

// pythons follows the Python processes of a job: those the hook runs in, and those it was kept out of, with the reason.
type pythons struct {
	spool string
	hook  string // folder that must be on their PYTHONPATH
	known map[host.Member]*python
	order []*python // as they were seen first
	total int
	exe   func(pid int) string
}

// python is one of them.
type python struct {
	host.Member
	since   uint64 // ns, when it was seen first
	looks   int
	hooked  bool
	writes  bool // it made a ring, as far as anybody looked
	command string
	why     string // recording.KeptOut…
	lives   bool   // it was there when last looked for
}

func newPythons(spool, hook string) *pythons {
	return &pythons{spool: spool, hook: hook, known: map[host.Member]*python{}, exe: func(pid int) string {
		path, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		return path
	}}
}

// settled is how many looks it takes to know what a process is: one that was just forked still looks like its parent, and one that
// was just started has not come to its sitecustomize.
const settled = 3

// look takes note of those of the processes that run Python, by the name of their program: python3.11, python.
func (p *pythons) look(now uint64, job []host.Member) {
	for _, one := range p.order {
		one.lives = false
	}
	for _, m := range job {
		one := p.known[m]
		if one != nil && one.hooked {
			one.lives = true
			p.judgeHooked(one)
			continue
		}
		exe := filepath.Base(p.exe(m.PID))
		if !strings.HasPrefix(exe, "python") {
			continue
		}
		if one == nil {
			one = &python{Member: m, since: now}
			p.known[m], p.order = one, append(p.order, one)
			p.total++
		}
		one.lives = true
		p.judge(one, exe)
	}
	p.forget()
}

// forget drops what has ended and has nothing to tell that another does not: a job may start new workers in every epoch, or the same
// Python that the hook was kept out of at every step.
func (p *pythons) forget() {
	const many = 512
	if len(p.order) < many {
		return
	}
	told := map[recording.KeptOut]bool{}
	kept := p.order[:0]
	for _, one := range p.order {
		tale := recording.KeptOut{Command: one.command, Why: one.why}
		dull := one.why == "" || one.why == recording.KeptOutUnknown || told[tale] || len(told) == mostKeptOut
		if !one.lives && dull {
			delete(p.known, one.Member)
			continue
		}
		if !one.lives {
			told[tale] = true
		}
		kept = append(kept, one)
	}
	clear(p.order[len(kept):])
	p.order = kept
}

func (p *pythons) judge(one *python, exe string) {
	if _, err := os.Lstat(filepath.Join(p.spool, "seen-"+strconv.Itoa(one.PID))); err == nil {
		one.hooked = true
		p.judgeHooked(one)
		return
	}
	if one.looks++; one.looks > settled {
		return
	}
	line := split(os.ReadFile("/proc/" + strconv.Itoa(one.PID) + "/cmdline"))
	environment, err := os.ReadFile("/proc/" + strconv.Itoa(one.PID) + "/environ")
	one.command = interpreter(line)
	one.why = p.obstacle(exe, line, split(environment, nil), err)
	if one.why == recording.KeptOutUnknown && !p.mayEnter(one.PID) {
		one.why = recording.KeptOutUser
	}
}

// judgeHooked finds a process that became another user after the hook ran in it and before it made its ring: as setuid(2) lets it.
func (p *pythons) judgeHooked(one *python) {
	one.why = ""
	if one.writes || p.mayEnter(one.PID) {
		return
	}
	if one.writes = p.hasRing(one.PID); !one.writes {
		one.command = interpreter(split(os.ReadFile("/proc/" + strconv.Itoa(one.PID) + "/cmdline")))
		one.why = recording.KeptOutUser
	}
}

func (p *pythons) hasRing(pid int) bool {
	files, _ := os.ReadDir(p.spool)
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		return strings.HasPrefix(f.Name(), "ring-"+strconv.Itoa(pid)+"-")
	})
}

// mayEnter reports whether a process runs as the user to whom the spool belongs, or as root; true where that cannot be seen.
func (p *pythons) mayEnter(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok { // real, effective, saved, file system (proc_pid_status(5))
			fields := strings.Fields(ids)
			return len(fields) < 2 || fields[1] == "0" || fields[1] == strconv.Itoa(os.Geteuid())
		}
	}
	return true
}

// split parts what /proc writes with a zero byte after each string.
func split(text []byte, err error) []string {
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// obstacle is why the hook cannot run in a Python with this command line and environment; unknown if there is no reason to see.
func (p *pythons) obstacle(exe string, line, environment []string, unread error) string {
	if minor, ok := strings.CutPrefix(exe, "python3."); ok {
		if n, err := strconv.Atoi(minor); err == nil && n < 8 {
			return recording.KeptOutOld
		}
	}
	if strings.HasPrefix(exe, "python2") {
		return recording.KeptOutOld
	}
	options, _ := options(line)
	for _, o := range []struct{ letter, why string }{
		{"I", recording.KeptOutIsolated}, {"E", recording.KeptOutNoEnv}, {"S", recording.KeptOutNoSite},
	} {
		if strings.Contains(options, o.letter) {
			return o.why
		}
	}
	if os.IsPermission(unread) {
		return recording.KeptOutUnreadable
	}
	env := newEnv(environment)
	switch {
	case unread != nil || len(env.list) == 0: // it has just ended, or it writes its title over its environment
		return recording.KeptOutUnknown
	case env.get("DATAWAIT_HOOK") == "off":
		return recording.KeptOutOff
	case env.get("DATAWAIT_SPOOL") == "":
		return recording.KeptOutNoSpool
	case !slices.Contains(filepath.SplitList(env.get("PYTHONPATH")), p.hook):
		return recording.KeptOutNoPath
	}
	return recording.KeptOutUnknown
}

// options returns the letters of Python's own options, and how many words of the command line they and the interpreter take
// (python(1): options end at -c, -m, -, -- or the first word that is none).
func options(line []string) (letters string, words int) {
	for words = 1; words < len(line); words++ {
		word := line[words]
		if len(word) < 2 || word[0] != '-' || word == "--" {
			return letters, words
		}
		if strings.HasPrefix(word, "--") {
			continue
		}
		for i, letter := range word[1:] {
			if letter == 'c' || letter == 'm' {
				return letters, words
			}
			if letter == 'W' || letter == 'X' { // its argument is the rest of the word, else the next one
				if i+2 == len(word) {
					words++
				}
				break
			}
			letters += string(letter)
		}
	}
	return letters, min(words, len(line))
}

// interpreter is a command line up to its script: what follows may hold secrets, and does not matter.
func interpreter(line []string) string {
	_, words := options(line)
	words = min(words, len(line))
	text := slices.Clone(line[:words])
	if words < len(line) {
		switch script := line[words]; {
		case strings.HasPrefix(script, "-") && strings.HasSuffix(script, "m") && words+1 < len(line):
			text = append(text, script, line[words+1])
		case strings.HasPrefix(script, "-"):
			text = append(text, script, "…")
		default:
			text = append(text, script)
		}
	}
	return cut(strings.Join(text, " "))
}

// cut shortens what may be a path without end.
func cut(text string) string {
	const most = 160
	if r := []rune(text); len(r) > most {
		return "…" + string(r[len(r)-most:])
	}
	return text
}

// count returns how many were seen so far.
func (p *pythons) count() int { return p.total }

// keptOut lists the processes in which the hook did not run. Where it ran in others, only those with a reason: the rest are forks of
// processes that it runs in.
func (p *pythons) keptOut(others bool) (list []*python) {
	for _, one := range p.order {
		switch {
		case one.why == "":
		case one.why != recording.KeptOutUnknown, !others && one.looks >= settled:
			list = append(list, one)
		}
	}
	return list
}

// mostKeptOut is how many of them a recording names; it names each command once.
const mostKeptOut = 8

func (p *pythons) noted(others bool) (notes []recording.KeptOut) {
	for _, one := range p.keptOut(others) {
		same := func(k recording.KeptOut) bool { return k.Command == one.command && k.Why == one.why }
		if len(notes) < mostKeptOut && !slices.ContainsFunc(notes, same) {
			notes = append(notes, recording.KeptOut{PID: one.PID, Command: one.command, Why: one.why})
		}
	}
	return notes
}

// Until a Python shows a sign of the hook so much time passes at most, though its machine be slow; where the reason why it never
// will is plain, there is less to wait for.
const (
	plainWait = 10 * time.Second
	hookWait  = 25 * time.Second
)

// overdue returns a process that lives and should have shown a sign of the hook by now.
func (p *pythons) overdue(now uint64, others bool) *python {
	for _, one := range p.keptOut(others) {
		wait := plainWait
		if one.why == recording.KeptOutUnknown {
			wait = hookWait
		}
		if one.lives && now-one.since >= uint64(wait) {
			return one
		}
	}
	return nil
}
