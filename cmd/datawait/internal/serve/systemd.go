package serve

import "github.com/coreos/go-systemd/v22/daemon"

// tellSystemd sends a line to the service manager that started this process, if one did and asks for it (sd_notify(3)). A manager that does
// not listen is none of ours.
func tellSystemd(line string) { _, _ = daemon.SdNotify(false, line) }
