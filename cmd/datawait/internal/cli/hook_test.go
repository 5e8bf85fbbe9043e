package cli

import "testing"

func TestSpoolOf(t *testing.T) {
	for _, c := range []struct{ flag, variable, usual, want string }{
		{"/flag", "/variable", "/usual", "/flag"},
		{"", "/variable", "/usual", "/variable"},
		{"", "", "/run/user/7/datawait/spool", "/run/user/7/datawait/spool"},
		{"", "", ".local/state/datawait/run/spool", "/run/datawait/spool"},
	} {
		if got := spoolOf(c.flag, c.variable, c.usual); got != c.want {
			t.Errorf("%v gives %s", c, got)
		}
	}
}
