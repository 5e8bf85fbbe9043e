package lab

import (
	"os/exec"
	"syscall"
)

// inGroup makes the command and what it starts one group that is killed as a whole when its time is up.
func inGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
