package protocol_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"wf/protocol"
)

// declared reads the names of all event types from the source: the constants of type EventType.
func declared(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "EventType" {
				value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out[value] = v.Names[0].Name
			}
			return true
		})
	}
	return out
}

func TestEveryEventTypeIsListed(t *testing.T) {
	names := declared(t)
	if names[string(protocol.EvDone)] != "EvDone" {
		t.Fatalf("the source was not read: %v", names)
	}
	delete(names, string(protocol.EvDelta)) // never stored
	for _, e := range protocol.Events() {
		if names[string(e.Type)] == "" {
			t.Errorf("%s is listed twice, or has no constant", e.Type)
		}
		delete(names, string(e.Type))
		if e.Doc == "" || e.Type.Spec() == nil || e.Type.Spec().Type != e.Type {
			t.Errorf("%s: %+v", e.Type, e)
		}
		if _, data := e.New(); data != nil && data().EventType() != e.Type {
			t.Errorf("the data of %s says that it is %s", e.Type, data().EventType())
		}
	}
	for value, name := range names {
		t.Errorf("%s (%q) is not in the list of protocol/events.go", name, value)
	}
}

// A Text deeper than the fields of the data itself would not be moved to a block.
func TestTextsAreFieldsOfTheData(t *testing.T) {
	var deeper func(t reflect.Type) bool
	deeper = func(t reflect.Type) bool {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			return deeper(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); f.IsExported() && deeper(f.Type) {
					return true
				}
			}
			return t == reflect.TypeFor[protocol.Text]()
		}
		return false
	}
	for _, e := range protocol.Events() {
		read, _ := e.New()
		if read == nil {
			continue
		}
		typ, texts := reflect.TypeOf(read).Elem(), 0
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Type == reflect.TypeFor[protocol.Text]() {
				texts++
				name, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
				if !e.TextKey([]byte(name)) {
					t.Errorf("%s: %s is no text", e.Type, name)
				}
			} else if deeper(f.Type) {
				t.Errorf("%s: a text lies within %s", e.Type, f.Name)
			}
		}
		if len(protocol.Texts(read)) != texts {
			t.Errorf("%s has %d texts, of %d", e.Type, len(protocol.Texts(read)), texts)
		}
	}
}
