package view

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"train.py": "train.py", "日本語 naïve": "日本語 naïve", "a\tb\r\nc\u00a0\u2003d ": "a b c d",
		"\x1b[2Jred\x07": `\x1b[2Jred\x07`, "evil\u202etxt.exe": `evil\u202etxt.exe`, "zero\u200bwidth\ufeff": `zero\u200bwidth\ufeff`, "\u2028x": "x",
		"bad \xff byte": "bad � byte", "\U000e0041tag": `\U000e0041tag`, "private \ue000": `private \ue000`,
		"z" + strings.Repeat("\u0337", 30) + "a": "z" + strings.Repeat("\u0337", maxMarks) + "a",
	} {
		if got := Clean(in, 100); got != want {
			t.Errorf("Clean(%q): got %q, want %q", in, got, want)
		}
	}
	if got := Clean(strings.Repeat("a", 50)+strings.Repeat("z", 50), 12); got != "aaaaaaa…zzzz" {
		t.Errorf("clipping: got %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff", 10)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = 10 + (max%1000+1000)%1000
		got := Clean(s, max)
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q holds %U", got, r)
			}
		}
		if n := utf8.RuneCountInString(got); n > 10*max {
			t.Errorf("%d runes of at most %d, each at most ten long", n, max)
		}
	})
}

// A command that is shown means the same when it is pasted into a shell.
func TestShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	words := []string{"python3", "--name=x y", "it's", `"quoted" \n $HOME`, "tab\tand\nline", "", "*", "ünï", "a'\tb", `back\slash`, "\u202e"}
	out, err := exec.Command(bash, "-c", "export LC_ALL=C.UTF-8; printf '%s\\0' "+shell(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); strings.Join(got, "|") != strings.Join(words, "|") {
		t.Errorf("got %q, want %q", got, words)
	}
	if s := shell(words); strings.ContainsAny(s, "\t\n\u202e") {
		t.Errorf("%q holds what cannot be seen", s)
	}
}

func TestTie(t *testing.T) {
	if got := spaced(cleanProse("64 % of a step, 8 workers, 44.2 ms and 3 things")); got != "64_% of a step, 8_workers, 44.2_ms and 3 things" {
		t.Errorf("got %s", got)
	}
}
