package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/folder"
	"github.com/datawait/datawait/cmd/datawait/internal/plan"
	"github.com/datawait/datawait/cmd/datawait/internal/progress"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/hook"
	"github.com/datawait/datawait/probe/recording"
)

// session is one wrapped run on its way.
type session struct {
	ctx     context.Context
	options Options
	line    *progress.Line
	host    string
	folder  *folder.Run
	out     *folder.Out
	keep    bool   // the run folder is left behind
	hook    string // folder of the unpacked hook
	agent   *agent
	job     *run.Job
}

// Run runs the command under observation and returns what became of it. An error is datawait's own: the command was
// not run, or its recording could not be kept; run.StatusOf gives its exit status.
func Run(ctx context.Context, o Options) (Outcome, error) {
	o = o.withDefaults()
	if err := run.Check(o.Command[0]); err != nil {
		return Outcome{}, err
	}
	// From the first file on datawait takes its signals itself, so that none leaves half a run folder behind.
	signals, stop := run.Signals()
	defer stop()
	s := &session{ctx: ctx, options: o, line: newLine(o)}
	elected, err := s.findFolder()
	if err != nil {
		return Outcome{}, err
	}
	if !elected {
		stop()
		run.Deliver(signals)
		return Outcome{}, run.Exec(o.Command, s.env())
	}
	defer s.leave()
	return s.observe(signals)
}

// leave removes the run folder, unless its rings hold what the recording lacks.
func (s *session) leave() {
	if s.out != nil {
		s.out.Release()
	}
	if s.keep {
		s.folder.Keep()
		return
	}
	s.folder.Remove()
}

// findFolder makes or finds the run folder of the job on this node, with the hook in it, and tells whether this process
// is to observe. Another wrapper of the same job may do that already.
func (s *session) findFolder() (elected bool, err error) {
	key, rank := folder.Key(os.Getenv, folder.LookUp(os.Getppid()))
	if key != "" {
		if s.folder, err = folder.OpenRun(key); err != nil {
			return false, err
		}
	}
	if key == "" || !s.folder.Claim(rank) {
		if s.folder, err = folder.OpenOwn(folder.LookUp(os.Getpid())); err != nil {
			return false, err
		}
	}
	if elected, err = s.folder.Elect(); err != nil {
		return false, err
	}
	if s.hook, err = s.folder.Hook(hook.Extract); err != nil {
		s.folder.Remove()
	}
	return elected, err
}

func (s *session) env() []string {
	return childEnv(os.Environ(), s.options.Env, s.folder.Dir, s.hook, s.options)
}

// observe is what the elected wrapper does.
func (s *session) observe(signals <-chan os.Signal) (Outcome, error) {
	out, err := s.makeOut()
	if err != nil {
		return Outcome{}, err
	}
	if s.agent, err = startAgent(s, out); err != nil {
		return Outcome{}, err
	}
	o := s.options
	s.job, err = run.Start(run.Command{Argv: o.Command, Env: s.env(), Stdin: o.Files.In, Stdout: o.Files.Out, Stderr: o.Files.Err})
	if err != nil {
		return Outcome{}, errors.Join(err, s.agent.abandon())
	}
	s.agent.follow(s.job)
	e := s.watch(signals)
	return s.finish(out, e, signals)
}

// makeOut makes the output folder; one that datawait names itself never collides.
func (s *session) makeOut() (string, error) {
	var err error
	if s.host, err = os.Hostname(); err != nil {
		return "", fmt.Errorf("asking for the host's name: %w", err)
	}
	out := s.options.Out
	if out == "" {
		if out, err = folder.MakeFresh(folder.Name(s.options.Command, time.Now())); err != nil {
			return "", err
		}
	}
	switch n := restarts(os.Getenv); {
	case s.options.Out == "":
	case n > 0:
		return s.makeNextOut(fmt.Sprintf("%s-restart-%d", out, n), "the job was started again; this attempt is recorded in ")
	case s.folder.Inherited():
		return s.makeNextOut(out+"-continued", "the datawait that observed this job has ended; what goes on is recorded in ")
	}
	s.out, err = folder.Create(out, s.host, s.options.Force)
	return out, err
}

// makeNextOut makes a further output folder: what was recorded of the job before stays. All nodes use the same.
func (s *session) makeNextOut(out, said string) (string, error) {
	var err error
	s.out, err = folder.Create(out, s.host, false)
	if errors.Is(err, folder.ErrExists) || errors.Is(err, folder.ErrInUse) {
		if out, err = folder.MakeFresh(out); err == nil {
			s.out, err = folder.Create(out, s.host, false)
		}
	}
	if err == nil {
		s.say(said + where(out))
	}
	return out, err
}

// restarts is how often a launcher has started this wrapper again. It knows nothing of output folders: the one it was told the
// first time is taken by now, and to refuse it would end the job.
func restarts(getenv func(string) string) int {
	for _, name := range []string{"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"} {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// manifest describes the run as far as it is known at its start.
func (s *session) manifest() recording.Manifest {
	o := s.options
	mode := "record"
	if o.Test {
		mode = "diagnose"
	}
	boot, _ := clock.BootID()
	return recording.Manifest{
		Version: o.Version, Host: s.host, BootID: boot, Command: o.Command,
		StartedAt: time.Now(), StartedMonotonic: clock.Mono(),
		Options: map[string]any{
			"mode": mode, "throwaway": o.Test, "gpu": o.GPU, "interval_seconds": o.Interval.Seconds(),
			"duration_seconds": o.Duration.Seconds(), "spool": s.folder.Dir,
		},
	}
}

func (s *session) say(sentence string) {
	if sentence != "" {
		s.line.Say("%s", sentence)
	}
}

// warn says what went wrong, also where the run is quiet: that a report is missing must not go unsaid.
func (s *session) warn(format string, args ...any) {
	s.line.Clear()
	fmt.Fprintf(s.options.Files.Err, "datawait: "+format+"\n", args...)
}

// hint says what a person could do.
func (s *session) hint(sentence string) {
	s.line.Clear()
	if !s.options.Quiet {
		fmt.Fprintln(s.options.Files.Err, "hint:", sentence)
	}
}

// where names the output folder as a person would type it.
func where(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return "./" + filepath.Clean(dir)
}

// planOptions are the planner's, from the flags.
func (s *session) planOptions() plan.Options {
	o := plan.Defaults(s.options.Duration)
	o.MaxStep, o.Window, o.Try = s.options.Steps, s.options.Interval, s.options.Try
	if len(s.options.Legs) > 0 {
		o.Legs = s.options.Legs
	}
	return o
}
