package host

import (
	"bytes"
	"errors"
)

// errFormat is the cause of every error a parser returns: the file is there and does not look as the kernel writes it.
var errFormat = errors.New("unexpected format")

// nextField returns the first word of b, which is empty at the end, and what follows it.
func nextField(b []byte) (field, rest []byte) {
	i := 0
	for i < len(b) && blank(b[i]) {
		i++
	}
	j := i
	for j < len(b) && !blank(b[j]) {
		j++
	}
	return b[i:j], b[j:]
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// nextLine returns the first line of b without its end, and what follows it.
func nextLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return line, rest
}

// skipFields returns what follows the first n words.
func skipFields(b []byte, n int) []byte {
	for range n {
		_, b = nextField(b)
	}
	return b
}

// nextNumber reads the first word as a number; one that is missing or no number is unknown.
func nextNumber(b []byte) (v uint64, rest []byte) {
	field, rest := nextField(b)
	if v, ok := decimal(field); ok {
		return v, rest
	}
	return unknown, rest
}

// decimal reads an unsigned number; false for anything else, and for one that does not fit.
func decimal(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || v > (1<<64-1-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// onlyNumber reads a file that holds one number.
func onlyNumber(b []byte) (uint64, bool) { return decimal(bytes.TrimSpace(b)) }

// value returns the number after "key" in a file of "key value" lines ("key: value kB" with a colon in key); unknown if the
// line is missing or holds no number.
func value(file []byte, key string) uint64 {
	for len(file) > 0 {
		var line []byte
		line, file = nextLine(file)
		if word, rest := nextField(line); string(word) == key {
			v, _ := nextNumber(rest)
			return v
		}
	}
	return unknown
}
