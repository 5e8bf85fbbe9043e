package json

import (
	"bytes"
	_ "embed"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is the JSON Schema (2020-12) of the document. It is generated from the types of package analysis and their
// comments; `go test ./report/json -update` makes it anew.
//
//go:embed report.schema.json
var Schema []byte

// SchemaID is the name under which the schema refers to itself. Nothing is ever fetched from it.
const SchemaID = "urn:datawait:report:1"

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(SchemaID, doc); err != nil {
		return nil, fmt.Errorf("adding the schema: %w", err)
	}
	return c.Compile(SchemaID)
})

// Validate checks a document against the schema.
func Validate(document []byte) error {
	s, err := compiled()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	return s.Validate(v)
}
