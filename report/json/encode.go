package json

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/datawait/datawait/probe/unit"
)

// Reason says why a value is null.
type Reason struct {
	Kind string `json:"kind"` // unknown, unsupported or failed
	Text string `json:"text"`
}

// encoder walks a value and writes it, collecting a reason for every null.
//
// encoding/json cannot do it: it fails on NaN, writes nil slices as null, and hides the reason of a missing value.
type encoder struct {
	out     bytes.Buffer
	reasons map[string]Reason
}

func newEncoder() *encoder { return &encoder{reasons: map[string]Reason{}} }

// document writes a struct and, as its last member, the reasons.
func (e *encoder) document(v reflect.Value) ([]byte, error) {
	e.fields("$", v)
	e.out.Truncate(e.out.Len() - 1) // the closing brace comes after the reasons
	e.out.WriteString(`,"reasons":`)
	if err := e.plain(e.reasons); err != nil {
		return nil, err
	}
	e.out.WriteByte('}')
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, e.out.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("indenting the document: %w", err)
	}
	pretty.WriteByte('\n')
	return pretty.Bytes(), nil
}

// missing is what every unit.Maybe offers: its state without its type.
type missing interface {
	Missing() (unit.Availability, string, bool)
}

// value writes one value. Errors cannot happen: what encoding/json refuses becomes null with a reason.
func (e *encoder) value(path string, v reflect.Value) {
	if m, ok := v.Interface().(missing); ok {
		e.maybe(path, v, m)
		return
	}
	if raw, ok := v.Interface().(json.RawMessage); ok {
		e.raw(path, raw)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			e.null(path, unit.Unknown, absent(path))
			return
		}
		e.value(path, v.Elem())
	case reflect.Float64:
		e.float(path, v.Float())
	case reflect.Struct:
		e.object(path, v)
	case reflect.Slice:
		e.list(path, v)
	case reflect.Map:
		e.dictionary(path, v)
	default:
		e.leaf(path, v)
	}
}

// absent says why a whole part is null.
func absent(path string) string {
	switch path {
	case "$.baseline":
		return "no cached-data test ran"
	case "$.track_record":
		return "no prediction was checked on this machine"
	}
	return "it was not observed"
}

func (e *encoder) maybe(path string, v reflect.Value, m missing) {
	kind, why, gone := m.Missing()
	if gone {
		e.null(path, kind, why)
		return
	}
	e.value(path, v.MethodByName("Get").Call(nil)[0])
}

func (e *encoder) null(path string, kind unit.Availability, why string) {
	if why == "" {
		why = map[unit.Availability]string{unit.Unsupported: "it cannot be measured here", unit.Failed: "its measurement failed"}[kind]
	}
	if why == "" {
		why = "nobody measured it"
	}
	e.reasons[path] = Reason{kind.String(), why}
	e.out.WriteString("null")
}

func (e *encoder) float(path string, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		e.null(path, unit.Failed, "the result is not a finite number")
		return
	}
	e.leaf(path, reflect.ValueOf(x))
}

// raw passes an argument of the job on as it was recorded, unless it is no JSON. A null in it is the job's own None: it is
// known, so it has no reason.
func (e *encoder) raw(path string, raw json.RawMessage) {
	if !json.Valid(raw) {
		e.null(path, unit.Failed, "what was recorded is no JSON value")
		return
	}
	e.leaf(path, reflect.ValueOf(raw))
}

func (e *encoder) leaf(path string, v reflect.Value) {
	if err := e.plain(v.Interface()); err != nil {
		e.null(path, unit.Failed, err.Error())
	}
}

// plain writes what encoding/json can. It escapes <, > and &, so a document is safe inside a page.
func (e *encoder) plain(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a value: %w", err)
	}
	e.out.Write(b)
	return nil
}

func (e *encoder) object(path string, v reflect.Value) {
	if _, ok := v.Interface().(json.Marshaler); ok { // time.Time
		e.leaf(path, v)
		return
	}
	e.fields(path, v)
}

// fields writes a struct under the names of its json tags, all of them, whatever their value.
func (e *encoder) fields(path string, v reflect.Value) {
	e.out.WriteByte('{')
	first := true
	for i := range v.NumField() {
		name, ok := fieldName(v.Type().Field(i))
		if !ok {
			continue
		}
		e.comma(&first)
		e.key(name)
		e.value(member(path, name), v.Field(i))
	}
	e.out.WriteByte('}')
}

// fieldName is the JSON name of a struct field; ok is false for one that is not part of the document.
func fieldName(f reflect.StructField) (name string, ok bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, f.IsExported() && name != "" && name != "-"
}

func (e *encoder) list(path string, v reflect.Value) {
	e.out.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			e.out.WriteByte(',')
		}
		e.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
	e.out.WriteByte(']')
}

func (e *encoder) dictionary(path string, v reflect.Value) {
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	e.out.WriteByte('{')
	first := true
	for _, k := range keys {
		e.comma(&first)
		e.key(k)
		e.value(member(path, k), v.MapIndex(reflect.ValueOf(k).Convert(v.Type().Key())))
	}
	e.out.WriteByte('}')
}

func (e *encoder) comma(first *bool) {
	if !*first {
		e.out.WriteByte(',')
	}
	*first = false
}

func (e *encoder) key(name string) {
	b, _ := json.Marshal(name) // a string always encodes
	e.out.Write(b)
	e.out.WriteByte(':')
}

// member extends a JSONPath (RFC 9535) by a name: $.gpus, or $.legs['host-cached'] where a name is no plain word.
func member(path, name string) string {
	plain := name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
	if plain && (name[0] < '0' || name[0] > '9') {
		return path + "." + name
	}
	name = strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name)
	return path + "['" + name + "']"
}
