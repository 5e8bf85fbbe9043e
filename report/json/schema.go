package json

import (
	"bytes"
	_ "embed"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is the JSON Schema (2020-12) of a report. It is generated from the types of package analysis and their
// comments; `go test ./report/json -update` makes it anew.
//
//go:embed report.schema.json
var Schema []byte

// CompareSchema is that of a comparison.
//
//go:embed compare.schema.json
var CompareSchema []byte

// FleetSchema is that of a fleet.
//
//go:embed fleet.schema.json
var FleetSchema []byte

// The names under which the schemas refer to themselves. Nothing is ever fetched from them.
const (
	SchemaID        = "urn:datawait:report:1"
	CompareSchemaID = "urn:datawait:compare:1"
	FleetSchemaID   = "urn:datawait:fleet:1"
)

// schema is one of them, compiled when it is first needed.
type schema struct {
	compile func() (*jsonschema.Schema, error)
}

var (
	report     = newSchema(SchemaID, func() []byte { return Schema })
	comparison = newSchema(CompareSchemaID, func() []byte { return CompareSchema })
	ofFleet    = newSchema(FleetSchemaID, func() []byte { return FleetSchema })
)

func newSchema(id string, text func() []byte) *schema {
	return &schema{sync.OnceValues(func() (*jsonschema.Schema, error) {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text()))
		if err != nil {
			return nil, fmt.Errorf("reading the schema: %w", err)
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		if err := c.AddResource(id, doc); err != nil {
			return nil, fmt.Errorf("adding the schema: %w", err)
		}
		return c.Compile(id)
	})}
}

// Validate checks a report against the schema.
func Validate(document []byte) error { return report.validate(document) }

// ValidateComparison checks a comparison against its schema.
func ValidateComparison(document []byte) error { return comparison.validate(document) }

// ValidateFleet checks a fleet against its schema.
func ValidateFleet(document []byte) error { return ofFleet.validate(document) }

func (s *schema) validate(document []byte) error {
	compiled, err := s.compile()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	return compiled.Validate(v)
}
