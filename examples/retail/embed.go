// Package retail carries the retailer's training job, so that `datawait demo` runs it from the binary alone.
package retail

import "embed"

// Files holds the Python files of the example.
//
//go:embed *.py
var Files embed.FS
