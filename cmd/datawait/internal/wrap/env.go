package wrap

import (
	"os"
	"strings"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
)

// childEnv is the environment of the command (SPEC §8). A run that may not be tested must not inherit the permission
// from an outer datawait.
func childEnv(base, extra []string, spool, hook string, o Options) []string {
	env := newEnv(append(append([]string{}, base...), extra...))
	env.set("DATAWAIT_SPOOL", spool)
	env.set("DATAWAIT_BUSY_DIR", spool)
	env.unset("DATAWAIT_TEST")
	if o.Test {
		env.set("DATAWAIT_TEST", "1")
	}
	switch o.GPU.Kind {
	case gpusource.Emulated:
		env.set("DATAWAIT_GPU", "emulated")
	case gpusource.None:
		env.unset("DATAWAIT_GPU")
	}
	path := hook
	if old := env.get("PYTHONPATH"); old != "" {
		path += string(os.PathListSeparator) + old
	}
	env.set("PYTHONPATH", path)
	return env.list
}

// environment is a list of "NAME=value" in which a name stands once.
type environment struct{ list []string }

// newEnv keeps the last value of every name: of names that stand twice, programs disagree on which counts.
func newEnv(pairs []string) *environment {
	e := &environment{}
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			e.set(name, value)
		}
	}
	return e
}

func (e *environment) find(name string) int {
	for i, pair := range e.list {
		if strings.HasPrefix(pair, name+"=") {
			return i
		}
	}
	return -1
}

func (e *environment) get(name string) string {
	if i := e.find(name); i >= 0 {
		return e.list[i][len(name)+1:]
	}
	return ""
}

func (e *environment) set(name, value string) {
	if i := e.find(name); i >= 0 {
		e.list[i] = name + "=" + value
		return
	}
	e.list = append(e.list, name+"="+value)
}

func (e *environment) unset(name string) {
	if i := e.find(name); i >= 0 {
		e.list = append(e.list[:i], e.list[i+1:]...)
	}
}
