// Package unit holds the two things every number in datawait carries: what it is measured in, and whether it is known at all.
//
// It decides that zero, unknown, unsupported and failed are four different values. A [Maybe] cannot be read without
// asking which one it is, and its JSON form is the value or null, never 0 in place of a missing number.
//
// Inside the program times are integer nanoseconds, ratios are 0–1 and sizes are bytes; scaling happens where a number is shown.
package unit

import (
	"encoding/json"
	"math"
)

// Availability says why a value is there or not. The zero value is Unknown: a value nobody set is unknown.
type Availability uint8

const (
	Unknown     Availability = iota // nobody measured it
	Known                           // measured
	Unsupported                     // this machine, version or source cannot measure it
	Failed                          // it was tried and went wrong
)

// String returns the word used in reports: unknown, known, unsupported or failed.
func (a Availability) String() string {
	switch a {
	case Known:
		return "known"
	case Unsupported:
		return "unsupported"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Maybe is a value that may be missing. The zero Maybe is unknown, with no reason given.
type Maybe[T any] struct {
	value T
	state Availability
	why   string
}

// Some returns a known value.
func Some[T any](v T) Maybe[T] { return Maybe[T]{value: v, state: Known} }

// None returns an unknown value; why is a short sentence a reader can act on.
func None[T any](why string) Maybe[T] { return Maybe[T]{state: Unknown, why: why} }

// NotSupported returns a value that cannot be measured here.
func NotSupported[T any](why string) Maybe[T] { return Maybe[T]{state: Unsupported, why: why} }

// Broken returns a value whose measurement failed.
func Broken[T any](why string) Maybe[T] { return Maybe[T]{state: Failed, why: why} }

// Get returns the value and whether it is known.
func (m Maybe[T]) Get() (T, bool) { return m.value, m.state == Known }

// Or returns the value if it is known, else fallback. Use it only where the fallback is not shown as a measurement.
func (m Maybe[T]) Or(fallback T) T {
	if m.state == Known {
		return m.value
	}
	return fallback
}

// IsKnown reports whether there is a value.
func (m Maybe[T]) IsKnown() bool { return m.state == Known }

// State returns the availability.
func (m Maybe[T]) State() Availability { return m.state }

// Why returns the reason of a missing value, "" for a known one.
func (m Maybe[T]) Why() string { return m.why }

// Missing describes an absent value for the report's reasons table; ok is false for a known one.
func (m Maybe[T]) Missing() (kind Availability, why string, ok bool) {
	return m.state, m.why, m.state != Known
}

// Lose makes the value a missing one. A document that was read back tells apart from it why a value is null.
func (m *Maybe[T]) Lose(kind Availability, why string) { *m = Maybe[T]{state: kind, why: why} }

// MarshalJSON writes the value, or null where it is missing.
func (m Maybe[T]) MarshalJSON() ([]byte, error) {
	if m.state != Known {
		return []byte("null"), nil
	}
	return json.Marshal(m.value)
}

// UnmarshalJSON reads a value, or null as unknown.
func (m *Maybe[T]) UnmarshalJSON(b []byte) error {
	*m = Maybe[T]{}
	if string(b) == "null" {
		return nil
	}
	if err := json.Unmarshal(b, &m.value); err != nil {
		return err
	}
	m.state = Known
	return nil
}

// AvailabilityOf reads a word that [Availability.String] wrote; an unknown word is Unknown.
func AvailabilityOf(word string) Availability {
	for a := range Failed + 1 {
		if a.String() == word {
			return a
		}
	}
	return Unknown
}

// Float returns a known float, or unknown for NaN and infinities, which no report may show.
func Float(v float64, why string) Maybe[float64] {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return None[float64](why)
	}
	return Some(v)
}
