package json

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/fleet"
)

var update = flag.Bool("update", false, "write the schema and the golden files anew")

// The schema cannot drift from the types: it is generated from them, and this test compares.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	for _, s := range []struct {
		file    string
		current []byte
		doc     document
	}{
		{"report.schema.json", Schema, document{reflect.TypeFor[analysis.Result](), SchemaID, analysis.Schema, "datawait report", "What datawait found about one job."}},
		{"compare.schema.json", CompareSchema, document{reflect.TypeFor[compare.Comparison](), CompareSchemaID, compare.Schema, "datawait comparison",
			"Two runs of a job side by side, before a change and after it, and predictions beside what came of them."}},
		{"fleet.schema.json", FleetSchema, document{reflect.TypeFor[fleet.Fleet](), FleetSchemaID, fleet.Schema, "datawait fleet",
			"What the GPUs of a cluster did over a window of time, job by job. Times are in GPU-hours where the name says so."}},
	} {
		want := generate(t, s.doc)
		if *update {
			if err := os.WriteFile(s.file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !bytes.Equal(s.current, want) {
			t.Errorf("%s is not that of its types; run: go test ./report/json -update, and look at the difference: a name may be added, none renamed", s.file)
		}
	}
}

// document is what a schema is of: its type, names, and what it holds in a sentence.
type document struct {
	root                     reflect.Type
	id, version, title, text string
}

// object is a JSON object that keeps its order.
type object []entry

type entry struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		k, _ := json.Marshal(m.name)
		v, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%s", k, v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// generator turns types into definitions, each once.
type generator struct {
	doc      document
	comments map[string]string // "Result.Schema" to the comment of the field
	order    []string
	defs     map[string]object
	types    map[string]reflect.Type
}

func generate(t *testing.T, d document) []byte {
	t.Helper()
	g := &generator{doc: d, comments: comments(t), defs: map[string]object{}, types: map[string]reflect.Type{}}
	root := g.structure(d.root)
	reason := object{{"type", "object"}, {"properties", object{
		{"kind", object{{"enum", []string{"unknown", "unsupported", "failed"}}}}, {"text", object{{"type", "string"}}},
	}}, {"required", []string{"kind", "text"}}}
	properties := append(root.get("properties").(object), entry{"reasons", object{
		{"description", "Why a value is null: its JSONPath, what kind of absence, and a sentence."}, {"type", "object"}, {"additionalProperties", reason},
	}})
	defs := object{}
	for _, name := range g.order {
		defs = append(defs, entry{name, g.defs[name]})
	}
	doc := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", d.id}, {"title", d.title},
		{"description", d.text + " Ratios are 0-1, times are seconds unless the name ends in _ns, sizes are bytes. null is unknown; reasons says why. Later versions may add members, never rename one."},
		{"type", "object"}, {"properties", properties}, {"required", names(properties)}, {"$defs", defs},
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func names(o object) []string {
	var out []string
	for _, m := range o {
		out = append(out, m.name)
	}
	return out
}

func (g *generator) structure(t reflect.Type) object {
	properties := object{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := fieldName(f)
		if !ok {
			continue
		}
		s := g.schema(f.Type)
		if c := g.comments[t.Name()+"."+f.Name]; c != "" {
			s = append(object{{"description", c}}, s...)
		}
		if t == g.doc.root && f.Name == "Schema" {
			s = append(s, entry{"const", g.doc.version})
		}
		properties = append(properties, entry{name, s})
	}
	return object{{"type", "object"}, {"properties", properties}, {"required", names(properties)}}
}

func (g *generator) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t.String() == "time.Time":
		return object{{"type", "string"}, {"format", "date-time"}}
	case strings.HasPrefix(t.String(), "unit.Maybe["):
		m, _ := t.MethodByName("Get")
		return orNull(g.schema(m.Type.Out(0)))
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(g.schema(t.Elem()))
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float64:
		return object{{"type", []string{"number", "null"}}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}
	case reflect.Slice:
		return object{{"type", "array"}, {"items", g.schema(t.Elem())}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", g.schema(t.Elem())}}
	case reflect.Struct:
		return g.reference(t)
	}
	panic("a type without a schema: " + t.String())
}

func (g *generator) reference(t reflect.Type) object {
	if known := g.types[t.Name()]; known != nil && known != t {
		panic(fmt.Sprintf("two types named %s: %v and %v", t.Name(), known, t))
	}
	g.types[t.Name()] = t
	if _, ok := g.defs[t.Name()]; !ok {
		g.defs[t.Name()] = nil
		def := g.structure(t)
		if c := g.comments[t.Name()]; c != "" {
			def = append(object{{"description", c}}, def...)
		}
		g.defs[t.Name()] = def
		g.order = append(g.order, t.Name())
	}
	return object{{"$ref", "#/$defs/" + t.Name()}}
}

func orNull(s object) object {
	if kind, ok := s.get("type").(string); ok && len(s) == 1 {
		return object{{"type", []string{kind, "null"}}}
	}
	if _, ok := s.get("type").([]string); ok {
		return s
	}
	return object{{"anyOf", []object{s, {{"type", "null"}}}}}
}

// comments reads the comments of all struct types below analysis.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("../../analysis/*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../analysis/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, more...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Skipf("the sources of package analysis do not parse at the moment: %v", err)
		}
		for _, d := range file.Decls {
			if gen, ok := d.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
				typeComments(out, gen)
			}
		}
	}
	return out
}

func typeComments(out map[string]string, gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		ts := spec.(*ast.TypeSpec)
		st, ok := ts.Type.(*ast.StructType)
		if !ok || !isReported(st) {
			continue
		}
		doc := ts.Doc
		if doc == nil {
			doc = gen.Doc
		}
		out[ts.Name.Name] = plainText(doc)
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				if c := plainText(f.Comment); c != "" {
					out[ts.Name.Name+"."+n.Name] = c
				} else {
					out[ts.Name.Name+"."+n.Name] = plainText(f.Doc)
				}
			}
		}
	}
}

// isReported tells the types that have JSON names from others of the same name.
func isReported(st *ast.StructType) bool {
	for _, f := range st.Fields.List {
		if f.Tag != nil && strings.Contains(f.Tag.Value, "json:") {
			return true
		}
	}
	return false
}

func plainText(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}
