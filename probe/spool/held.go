package spool

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// Held is a child of a rank that waits before a save (SPEC §4): the run has trained on repeated batches.
type Held struct {
	PID  int
	Note recording.SaveGuardNote // empty if the file could not be read
}

const (
	heldPrefix = "held-"
	maxHeld    = 64
	maxHeldLen = 4 << 10 // bytes of one file
)

func heldPID(name string) (int, bool) {
	text, ok := strings.CutPrefix(name, heldPrefix)
	pid, err := strconv.Atoi(text)
	return pid, ok && err == nil && pid > 0 && strconv.Itoa(pid) == text
}

// adoptHeld looks for children that were held since the folder was read last.
func (d *Drainer) adoptHeld(entries []os.DirEntry) {
	for _, e := range entries {
		pid, ok := heldPID(e.Name())
		if !ok || len(d.held) >= maxHeld || d.holds(pid) {
			continue
		}
		d.held = append(d.held, Held{PID: pid, Note: readHeld(filepath.Join(d.dir, e.Name()))})
	}
}

func (d *Drainer) holds(pid int) bool {
	for _, h := range d.held {
		if h.PID == pid {
			return true
		}
	}
	return false
}

func readHeld(path string) (note recording.SaveGuardNote) {
	f, err := recording.OpenRegular(path)
	if err != nil {
		return note
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHeldLen))
	if err != nil || json.Unmarshal(text, &note) != nil {
		return recording.SaveGuardNote{}
	}
	note.Call, note.Target = strings.ToValidUTF8(note.Call, "?"), strings.ToValidUTF8(note.Target, "?")
	return note
}

// Held lists the children that wait before a save, in the order in which they were found.
func (d *Drainer) Held() []Held { return d.held }
