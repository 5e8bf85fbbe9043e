package recording

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestControlPageIsRewrittenAndRead(t *testing.T) {
	dir := t.TempDir()
	w, err := CreateControl(dir, 77)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := ReadControl(dir)
	if err != nil || c.Mode != ControlObserve || c.AgentPID != 77 || c.ParkAt != Unknown64 {
		t.Errorf("at first: %+v, %v", c, err)
	}
	want := Control{Mode: ControlTest, AgentPID: 77, Cap: 1 << 30, ParkAt: 300, Held: true, Plan: []PlannedBlock{
		{Block: 1, Leg: LegLive, First: 100, End: 140}, {Block: 2, Leg: LegHostCached, First: 140, End: 180, Flags: PlanSolo}}}
	for range 3 {
		if err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if c, err = ReadControl(dir); err != nil || !reflect.DeepEqual(c, want) {
			t.Errorf("read %+v, %v", c, err)
		}
	}
	if info, _ := os.Stat(filepath.Join(dir, ControlName)); info.Size() != ControlBytes || info.Mode().Perm() != 0o600 {
		t.Errorf("page is %v, %d bytes", info.Mode(), info.Size())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Ranks have the page mapped: who comes after an agent that died must write into the same file, and its generation go on.
func TestThePageOfADeadAgentIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	first, err := CreateControl(dir, 77)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Write(Control{Mode: ControlPark, AgentPID: 77}); err != nil {
		t.Fatal(err)
	}
	if w, err := CreateControl(dir, 78); err != nil || sameFile(t, first, w) {
		t.Fatalf("the page of an agent that lives was taken: %v", err)
	} else {
		w.Close()
	}
	second, err := CreateControl(dir, 79)
	if err != nil {
		t.Fatal(err)
	}
	before := second.generation
	if _, err := second.f.WriteAt([]byte{9}, 8); err != nil { // it dies while it writes
		t.Fatal(err)
	}
	second.Close()
	third, err := CreateControl(dir, 80)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	c, err := ReadControl(dir)
	if err != nil || c.Mode != ControlObserve || c.AgentPID != 80 || !c.Held || third.generation <= before {
		t.Errorf("%+v, generation %d after %d, %v", c, third.generation, before, err)
	}
	if info, _ := os.Stat(filepath.Join(dir, ControlName)); !os.SameFile(info, stat(t, third)) {
		t.Error("the page was replaced")
	}
}

func stat(t *testing.T, w *ControlWriter) os.FileInfo {
	t.Helper()
	info, err := w.f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func sameFile(t *testing.T, a, b *ControlWriter) bool { return os.SameFile(stat(t, a), stat(t, b)) }

func TestAPageInTheMakingIsNotRead(t *testing.T) {
	page := Control{ParkAt: Unknown64}.encode(3)
	if _, err := ParseControl(page); !errors.Is(err, ErrControlBusy) {
		t.Errorf("odd generation: %v", err)
	}
}

func TestPlansThatRanksCouldReadDifferently(t *testing.T) {
	long := make([]PlannedBlock, MaxBlocks+1)
	for i := range long {
		long[i] = PlannedBlock{Block: uint32(i + 1), First: uint64(10 * i), End: uint64(10*i + 10)}
	}
	if err := (Control{Plan: long[:MaxBlocks]}).check(); err != nil {
		t.Errorf("a full plan: %v", err)
	}
	for name, plan := range map[string][]PlannedBlock{
		"too long":     long,
		"block 0":      {{Block: 0, First: 1, End: 2}},
		"no steps":     {{Block: 1, First: 5, End: 5}},
		"not in order": {{Block: 2, First: 1, End: 2}, {Block: 1, First: 2, End: 3}},
		"overlapping":  {{Block: 1, First: 1, End: 5}, {Block: 2, First: 4, End: 8}},
	} {
		if (Control{Plan: plan}).check() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	w, err := CreateControl(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.Write(Control{Plan: long}) == nil {
		t.Error("a plan that is too long was written")
	}
}

func TestNoControlPage(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadControl(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	os.WriteFile(filepath.Join(dir, ControlName), []byte("short"), 0o600)
	if _, err := ReadControl(dir); err == nil {
		t.Error("a short file was read")
	}
	if _, err := CreateControl(filepath.Join(dir, "none"), 1); err == nil {
		t.Error("created a page in a folder that is not there")
	}
}
