package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the dashboards anew")

// What is committed is what the code makes.
func TestFilesAreCurrent(t *testing.T) {
	made, err := files()
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 4 {
		t.Fatalf("%d files", len(made))
	}
	for name, want := range made {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code makes (%v); go generate writes it anew", name, err)
		}
	}
}

// picture is what is looked at here of Grafana's JSON.
type picture struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Targets     []target `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Custom        struct {
				SpanNulls any `json:"spanNulls"`
			}
		}
	}
	Options struct {
		ReduceOptions struct{ Calcs []string }
	}
}

type target struct {
	Expr    string `json:"expr"`
	RefID   string `json:"refId"`
	Instant bool   `json:"instant"`
	Range   bool   `json:"range"`
}

// pictures reads a committed dashboard back, rows apart.
func pictures(t *testing.T, file string) []picture {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Panels []picture }
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var found []picture
	for _, p := range d.Panels {
		if p.Type != "row" {
			found = append(found, p)
		}
	}
	if len(found) < 10 {
		t.Fatalf("%s has %d panels", file, len(found))
	}
	return found
}
