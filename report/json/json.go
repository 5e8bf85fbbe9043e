// Package json writes a result as a document of the schema datawait.report/1, which other programs read.
//
// Three promises hold for every document: what is unknown is null, never 0 and never left out; a table "reasons" says for
// each null why; and no list is null. Names and text stay exactly as recorded; only JSON itself escapes them. Every
// document is checked against [Schema] before it is handed out.
package json

import (
	"fmt"

	"github.com/datawait/datawait/analysis"
)

// Marshal returns the document. If it does not match the schema, it is returned all the same, beside an error that says where.
func Marshal(r *analysis.Result) ([]byte, error) {
	b, err := newEncoder().document(r)
	if err != nil {
		return nil, err
	}
	if err := Validate(b); err != nil {
		return b, fmt.Errorf("the document does not match its schema: %w", err)
	}
	return b, nil
}
