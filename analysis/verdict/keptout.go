package verdict

import (
	"fmt"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// obstacles say of each reason why the hook did not run, and what to do about it.
var obstacles = map[string]struct{ why, do string }{
	recording.KeptOutIsolated:   {"-I makes Python ignore PYTHONPATH", "start it without -I"},
	recording.KeptOutNoEnv:      {"-E makes Python ignore PYTHONPATH", "start it without -E"},
	recording.KeptOutNoSite:     {"-S makes Python leave out sitecustomize", "start it without -S"},
	recording.KeptOutNoSpool:    {"its launcher drops the environment", "have the launcher pass on PYTHONPATH and every variable that begins with DATAWAIT_"},
	recording.KeptOutNoPath:     {"its PYTHONPATH was set anew, without the hook", "add to PYTHONPATH instead of setting it"},
	recording.KeptOutOff:        {"DATAWAIT_HOOK=off is set", "unset DATAWAIT_HOOK"},
	recording.KeptOutOld:        {"it is older than Python 3.8", "use Python 3.8 or newer"},
	recording.KeptOutUser:       {"it runs as another user, to whom the folder of records is closed", "put datawait behind the change of user: gosu app datawait record -- python3 train.py"},
	recording.KeptOutUnreadable: {"its environment cannot be read, so it belongs to another user", "start datawait as that user"},
}

// byItself is what works wherever the script may be changed: the environment's variables are there, only the path is not.
const byItself = ", or install the wheel (make wheel) and call datawait.install() in the script"

// hookNotLoaded: a Python child ran and wrote nothing.
func (s *subject) hookNotLoaded() Verdict {
	title, do := s.whyNotLoaded()
	return Verdict{
		ID: HookNotLoaded, Title: title, Do: do, Confidence: 0.95, Share: unit.None[float64]("nothing was measured"),
		Evidence:    evidence{}.value("python_processes", float64(s.f.PythonChildren), "count", byHost).value("spools", 0, "count", byHost),
		FalsifiedBy: "a spool of one of these processes in the recording",
	}
}

func (s *subject) whyNotLoaded() (title, do string) {
	const blind = ", so nothing is known of the data path"
	switch {
	case s.f.HookDisabled:
		return "the hook switched itself off after an error" + blind, ""
	case len(s.f.KeptOut) > 0:
		k := s.f.KeptOut[0]
		why, do := Obstacle(k.Why)
		return fmt.Sprintf("the hook did not run in `%s`: %s%s", k.Command, why, blind), do
	case len(s.f.Refused) > 0:
		return fmt.Sprintf("the hook could not write what it saw: %s%s", s.f.Refused[0], blind), ""
	case s.f.PythonChildren == 0:
		return "no Python process of the job was seen on this machine" + blind,
			"start datawait where Python runs: inside the container, or on the machine that the launcher starts it on"
	}
	_, do = Obstacle(recording.KeptOutUnknown)
	return "the hook did not run in any training process" + blind, do
}

// Obstacle says why the hook did not run in a process, by the code of recording.KeptOut, and what to do about it.
func Obstacle(code string) (why, do string) {
	o, known := obstacles[code]
	if !known {
		o.why, o.do = "the reason could not be seen", "look whether its sitecustomize is another one"
	}
	if code == recording.KeptOutUser {
		return o.why, o.do // a hook that is installed finds the folder closed as well
	}
	return o.why, o.do + byItself
}
