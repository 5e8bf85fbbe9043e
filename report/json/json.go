// Package json writes a result as a document of the schema datawait.report/1, a comparison as one of datawait.compare/1, and a fleet as
// one of datawait.fleet/1, which other programs read; and reads a report back.
//
// Three promises hold for every document: what is unknown is null, never 0 and never left out; a table "reasons" says for
// each null why; and no list is null. Names and text stay exactly as recorded; only JSON itself escapes them. Every
// document is checked against its schema before it is handed out.
package json

import (
	"fmt"
	"reflect"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/fleet"
)

// Marshal returns the document of a result. If it does not match the schema, it is returned all the same, beside an error that says where.
func Marshal(r *analysis.Result) ([]byte, error) { return checked(reflect.ValueOf(r).Elem(), report) }

// MarshalComparison is Marshal for two results side by side.
func MarshalComparison(c *compare.Comparison) ([]byte, error) {
	return checked(reflect.ValueOf(c).Elem(), comparison)
}

// MarshalFleet is Marshal for a fleet.
func MarshalFleet(f *fleet.Fleet) ([]byte, error) { return checked(reflect.ValueOf(f).Elem(), ofFleet) }

func checked(v reflect.Value, s *schema) ([]byte, error) {
	b, err := newEncoder().document(v)
	if err != nil {
		return nil, err
	}
	if err := s.validate(b); err != nil {
		return b, fmt.Errorf("the document does not match its schema: %w", err)
	}
	return b, nil
}
