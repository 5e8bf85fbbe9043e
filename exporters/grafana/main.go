// Command grafana writes the dashboards that are shipped with datawait: fleet.json, job.json and agent.json, and queries.txt, which has
// every query of theirs as Prometheus reads it. `go generate` runs it; a test holds the files to it.
//
// It is a module of its own, so that Grafana's SDK is no dependency of datawait. A dashboard is said in board.go's words (fleet.go,
// job.go, agent.go) and turned into Grafana's in dashboard.go and panel.go, which alone know the SDK.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run .

// boards are all that is shipped.
func boards() []board { return []board{fleet(), job(), agent()} }

func main() {
	dir := flag.String("out", ".", "folder to write to")
	flag.Parse()
	files, err := files()
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(*dir, name), text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// files makes what is committed, by name.
func files() (map[string][]byte, error) {
	made := map[string][]byte{"queries.txt": queryList()}
	for _, b := range boards() {
		text, err := b.json()
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", b.file, err)
		}
		made[b.file] = text
	}
	return made, nil
}
