// Package json writes a result as a document of the schema datawait.report/1, which other programs read.
//
// Three promises hold for every document: what is unknown is null, never 0 and never left out; a table "reasons" says for
// each null why; and no list is null. Names and text stay exactly as recorded; only JSON itself escapes them.
package json

import (
	"github.com/datawait/datawait/analysis"
)

// Marshal returns the document.
func Marshal(r *analysis.Result) ([]byte, error) {
	e := newEncoder()
	return e.document(r)
}
