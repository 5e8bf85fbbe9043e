package recording

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestANameIsPlainTextOfSomeLength(t *testing.T) {
	for in, want := range map[string]string{
		"train-0":                "train-0",
		"größe 7":                "größe 7",
		"a\x1b[2Jb\r\n\x00":      "a\uFFFD[2Jb\uFFFD\uFFFD\uFFFD",
		"a\xffb":                 "a\uFFFDb",
		"evil\u202etxt.exe":      "evil\uFFFDtxt.exe",
		"":                       "",
		strings.Repeat("x", 999): strings.Repeat("x", MaxName),
	} {
		if got := Name(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if got := Name(strings.Repeat("x", MaxName-1) + "ü"); !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) {
		t.Errorf("cut inside a letter: %q", got)
	}
}
