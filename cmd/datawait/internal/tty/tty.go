// Package tty asks whether a file is a terminal, and what it can show.
package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

// Is reports whether a file is a terminal.
func Is(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Color reports whether colours may be used: on a terminal, unless NO_COLOR is set (no-color.org) or it is a dumb one.
func Color(f *os.File) bool {
	return Is(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Width returns the columns of a terminal, 0 if it is none or does not tell.
func Width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
