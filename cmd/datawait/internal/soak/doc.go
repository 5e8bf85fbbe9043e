// Package soak holds tests alone: processes of a run die at any moment, and nothing may come of it.
//
// Each run is a real one, of the datawait that this test binary also is, around a small training that keeps its own account.
// Read TestSoak first.
package soak
