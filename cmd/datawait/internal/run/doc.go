// Package run starts the command that datawait wraps and stands between it and the world: terminal, signals, orphans
// and the end.
//
// It decides that the command must not notice it is wrapped. It reads and writes the same three files, is the
// terminal's foreground job when datawait was, stops and continues with the shell's job control, gets the signals that
// datawait gets, and its exit status is passed on. Its orphans are adopted and reaped, as an init would.
//
// It refuses to decide when a command should end. Only [Job.Kill] ends one, and only with SIGKILL: no handler, no
// `finally:` and no "save the final model" of a training script runs.
//
// Read [Job] and [Exit] first.
package run
