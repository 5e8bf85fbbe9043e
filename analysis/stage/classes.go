package stage

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode"
)

// A Class is a kind of work in building a batch.
type Class string

// The classes, in the order in which a batch goes through them.
const (
	Read      Class = "read"
	Decode    Class = "decode"
	Join      Class = "join"
	Tokenise  Class = "tokenise"
	Transform Class = "transform"           // the same for a sample in every epoch
	Augment   Class = "random augmentation" // drawn anew each time
	Collate   Class = "collate"
	Other     Class = "other" // what the table does not know
)

// Classes lists them in that order.
var Classes = []Class{Read, Decode, Join, Tokenise, Transform, Augment, Collate, Other}

// In the table only.
const (
	readOrDecode Class = "read|decode" // read where it waits, decode where it computes
	caller       Class = "caller"      // its caller says what for
)

//go:embed CLASSES.md
var table string

// rule is one row of the table.
type rule struct {
	class     Class
	files     []string // patterns
	functions []string // patterns
	words     []string
}

var rules = mustParse(table)

func mustParse(text string) []rule {
	rules, err := parse(text)
	if err != nil {
		panic("CLASSES.md: " + err.Error()) // the text is part of the program; a test parses it
	}
	return rules
}

func parse(text string) (rules []rule, err error) {
	for number, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		if len(cells) != 6 || strings.HasPrefix(strings.TrimSpace(cells[1]), "-") || strings.TrimSpace(cells[1]) == "class" {
			continue
		}
		r := rule{class: Class(strings.ReplaceAll(strings.TrimSpace(cells[1]), "\x00", "|"))}
		if !known(r.class) {
			return nil, fmt.Errorf("line %d: no class %q", number+1, r.class)
		}
		r.files, _ = entries(cells[2])
		r.functions, r.words = entries(cells[3])
		if len(r.files) == 0 || len(r.functions)+len(r.words) == 0 {
			return nil, fmt.Errorf("line %d: file and function are needed", number+1)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func known(c Class) bool {
	for _, one := range append(Classes, readOrDecode, caller) {
		if c == one {
			return true
		}
	}
	return false
}

// entries parts those in backquotes from plain words.
func entries(cell string) (patterns, words []string) {
	for _, field := range strings.Fields(cell) {
		if quoted, ok := strings.CutPrefix(field, "`"); ok {
			patterns = append(patterns, strings.TrimSuffix(quoted, "`"))
		} else {
			words = append(words, field)
		}
	}
	return patterns, words
}

// function is a name taken apart once.
type function struct {
	file, name, last string
	words            map[string]bool
}

func takeApart(name string) function {
	file, rest, _ := strings.Cut(name, ":")
	f := function{file: file, name: rest, last: rest[strings.LastIndexByte(rest, '.')+1:], words: map[string]bool{}}
	for _, w := range splitWords(f.last) {
		f.words[w] = true
	}
	f.words[strings.ToLower(strings.Trim(f.last, "_"))] = true // "collate_fn", "to_tensor"
	return f
}

// splitWords parts snake_case, camelCase and digits, in lower case.
func splitWords(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = nil
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}

func (r *rule) fits(f *function) bool { return r.fitsFile(f.file) && r.fitsFunction(f) }

func (r *rule) fitsFile(file string) bool {
	for _, p := range r.files {
		if match(p, file) {
			return true
		}
	}
	return false
}

func (r *rule) fitsFunction(f *function) bool {
	for _, p := range r.functions {
		name := f.last
		if strings.Contains(p, ".") {
			name = f.name
		}
		if match(p, name) {
			return true
		}
	}
	for _, w := range r.words {
		if f.words[w] {
			return true
		}
	}
	return false
}

// match reports whether a pattern, in which * stands for anything, fits the whole text.
func match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// classOf returns the class of a function by the first row that fits, "" without any.
func classOf(f *function) Class {
	for i := range rules {
		if rules[i].fits(f) {
			return rules[i].class
		}
	}
	return ""
}

// byWords is the class of a function by its name alone, whatever its file.
func byWords(f *function) Class {
	for i := range rules {
		if len(rules[i].words) > 0 && rules[i].fitsFunction(f) {
			return rules[i].class
		}
	}
	return ""
}

// A Classifier remembers functions it has seen. The zero value is ready; it is for one goroutine.
type Classifier struct{ seen map[string]classified }

type classified struct{ first, byWord Class }

func (c *Classifier) of(name string) classified {
	if k, ok := c.seen[name]; ok {
		return k
	}
	f := takeApart(name)
	k := classified{classOf(&f), byWords(&f)}
	if c.seen == nil {
		c.seen = map[string]classified{}
	}
	c.seen[name] = k
	return k
}

// Of returns the class of the work at the end of a path (from the root to the leaf), once for a thread that computes and once for
// one that waits, and the function on the path that says so: "" for [Other].
func (c *Classifier) Of(path []string) (on, off Class, by string) {
	for i := len(path) - 1; i >= 0; i-- {
		if class := c.of(path[i]).first; class != "" && class != caller && class != Other {
			return class.on(), class.off(), path[i]
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		if k := c.of(path[i]); k.byWord != "" && k.first != Other {
			return k.byWord.on(), k.byWord.off(), path[i]
		}
	}
	return Other, Other, ""
}

// OfTransform is the class of a transform by its name as the hook gives it ("module/of/it:Class"), [Other] if it is not known.
func (c *Classifier) OfTransform(name string) Class {
	module, class, _ := strings.Cut(name, ":")
	on, _, _ := c.Of([]string{module + ".py:" + class + ".__call__"})
	if on == Other {
		on, _, _ = c.Of([]string{module + ".py:" + class})
	}
	return on
}

func (c Class) on() Class {
	if c == readOrDecode {
		return Decode
	}
	return c
}

func (c Class) off() Class {
	if c == readOrDecode {
		return Read
	}
	return c
}
