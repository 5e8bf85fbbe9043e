package recording

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is how long a name of somebody else's may be, in bytes: as long as Kubernetes lets names be.
const MaxName = 253

// Name makes a name out of what another program wrote: no control character, no broken UTF-8, not endless.
func Name(s string) string {
	if len(s) > MaxName {
		s = s[:MaxName]
		for !utf8.ValidString(s) && len(s) > MaxName-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return utf8.RuneError
		}
		return r
	}, s)
}
