package progress

import (
	"bytes"
	"testing"
	"time"
)

func TestPlainLinesAreFew(t *testing.T) {
	var b bytes.Buffer
	l := New(&b, false, 0)
	l.Show(Status{Phase: "waiting for the first step", Wait: -1, SM: -1})
	l.Show(Status{Phase: "waiting for the first step", Wait: -1, SM: -1, Elapsed: time.Minute})
	l.Show(Status{Phase: "watching", Steps: 12, Ranks: 2, Wait: 0.613, SM: 0.256, Left: time.Minute})
	l.Clear()
	l.Say("ending the run after %d blocks", 8)
	want := "datawait: waiting for the first step\n" +
		"datawait: watching · step 12 · 2 ranks · data wait 61 % · SM activity 26 %\n" +
		"datawait: ending the run after 8 blocks\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestALiveLineIsReplacedAndCut(t *testing.T) {
	var b bytes.Buffer
	l := New(&b, true, 30)
	l.Show(Status{Phase: "watching", Steps: 7, Wait: -1, SM: -1, Left: 65 * time.Second})
	l.Show(Status{Phase: "a", Wait: -1, SM: -1, Left: -1})
	l.Say("done")
	l.Clear()
	want := "\r\x1b[Kdatawait: watching · step 7 ·" + "\r\x1b[Kdatawait: a · 0 s | " + "\r\x1b[K" + "datawait: done\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestQuiet(t *testing.T) {
	l := New(nil, true, 80)
	l.Show(Status{Phase: "watching"})
	l.Say("anything")
	l.Clear()
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 s", 59 * time.Second: "59 s", 125 * time.Second: "2 m 05 s"} {
		if got := short(d); got != want {
			t.Errorf("short(%v) = %q, want %q", d, got, want)
		}
	}
}
