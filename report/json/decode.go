package json

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// Unmarshal reads a report back. A later version may have members that this one does not know, and an earlier one may lack some: what is
// not there is unknown. What is null gets its reason again, and an estimate of which a part is null is unknown as a whole.
func Unmarshal(document []byte) (*analysis.Result, error) {
	var head struct {
		Schema  *string           `json:"schema"`
		Reasons map[string]Reason `json:"reasons"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	switch {
	case head.Schema == nil:
		return nil, fmt.Errorf("reading a report: it has no schema, so it is no report of datawait")
	case *head.Schema != analysis.Schema:
		return nil, fmt.Errorf("reading a report: its schema is %.60q, and this version reads %s", *head.Schema, analysis.Schema)
	}
	r := &analysis.Result{}
	if err := json.Unmarshal(document, r); err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	newRestorer(head.Reasons).value("$", reflect.ValueOf(r).Elem())
	return r, nil
}

// restorer walks a value that was read and takes back what stood for null.
type restorer struct {
	reasons map[string]Reason
	holes   map[string]Reason // the same by what the null is a member of
}

func newRestorer(reasons map[string]Reason) restorer {
	d := restorer{reasons, map[string]Reason{}}
	for path, r := range reasons {
		if i := strings.LastIndexByte(path, '.'); i > 0 {
			d.holes[path[:i]] = r
		}
	}
	return d
}

// losable is what every pointer to a unit.Maybe offers.
type losable interface {
	missing
	Lose(unit.Availability, string)
}

// notSaid is why something is unknown of which a report says nothing.
const notSaid = "the report does not say"

func (d restorer) value(path string, v reflect.Value) {
	if m, ok := v.Addr().Interface().(losable); ok {
		d.maybe(path, m)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			d.value(path, v.Elem())
		}
	case reflect.Float64:
		if _, null := d.reasons[path]; null { // encoding/json leaves a 0 where null stood
			v.SetFloat(math.NaN())
		}
	case reflect.Struct:
		d.fields(path, v)
	case reflect.Slice:
		for i := range v.Len() {
			d.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Map:
		d.dictionary(path, v)
	}
}

func (d restorer) fields(path string, v reflect.Value) {
	for i := range v.NumField() {
		if name, ok := fieldName(v.Type().Field(i)); ok {
			d.value(member(path, name), v.Field(i))
		}
	}
}

// dictionary restores the values of a map; they cannot be changed in place.
func (d restorer) dictionary(path string, v reflect.Value) {
	for _, k := range v.MapKeys() {
		x := reflect.New(v.Type().Elem()).Elem()
		x.Set(v.MapIndex(k))
		d.value(member(path, k.String()), x)
		v.SetMapIndex(k, x)
	}
}

// maybe gives a missing value its reason, and makes one missing that has a hole.
func (d restorer) maybe(path string, m losable) {
	_, _, gone := m.Missing()
	reason, said := d.reasons[path]
	hole, holed := d.holes[path]
	switch {
	case gone && said:
		m.Lose(unit.AvailabilityOf(reason.Kind), reason.Text)
	case gone:
		m.Lose(unit.Unknown, notSaid)
	case holed:
		m.Lose(unit.AvailabilityOf(hole.Kind), hole.Text)
	}
}
