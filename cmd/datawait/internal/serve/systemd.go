package serve

import (
	"net"
	"os"
)

// tellSystemd sends a line to the service manager that started this process, if one did and asks for it (sd_notify(3)).
func tellSystemd(line string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if path[0] == '@' { // an abstract name
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(line)) // a manager that does not listen is none of ours
}
