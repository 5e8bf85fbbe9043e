// Command datawait tells whether the GPUs of a PyTorch training job work or wait for data, and which fix removes the
// most wait. `datawait --help` has examples; package cli holds the commands.
package main

import (
	"os"

	"github.com/datawait/datawait/cmd/datawait/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
