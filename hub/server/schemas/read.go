package main

import (
	"cmp"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// goType is a type as it is declared, and the component that is made of it: an object of properties, or
// any other schema.
type goType struct {
	pkg, name, doc string
	component      string // its name
	expr           ast.Expr
	values         []any // the constants of a string type

	request bool // what a client sends: other fields are refused
	props   []property
	other   schema // nil for an object of properties
	written bool   // in the document of the server
}

func (t *goType) String() string { return t.pkg + "." + t.name }

// generator holds what was read, and what is written.
type generator struct {
	types            map[string]*goType // by api.Run
	made, components map[string]*goType // by their components: all, and those that are written

	Names           map[string]string // these are overrides.yaml
	Schemas, Fields map[string]schema
	Nullable        map[string]bool
}

// read parses the packages and the overrides.
func read(root string) *generator {
	g := &generator{types: map[string]*goType{}, made: map[string]*goType{}, components: map[string]*goType{}}
	must(0, yaml.Load(must(os.ReadFile(filepath.Join(root, overrides))), g, yaml.WithKnownFields()))
	g.Fields["Error.code"] = schema{"enum": codeNames(0)}
	for _, dir := range packages {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range must(filepath.Glob(filepath.Join(root, dir, "*.go"))) {
			if !strings.HasSuffix(name, "_test.go") {
				files = append(files, must(parser.ParseFile(fset, name, nil, parser.ParseComments)))
			}
		}
		for _, t := range must(doc.NewFromFiles(fset, files, dir, doc.AllDecls)).Types {
			g.declare(path.Base(dir), t)
		}
	}
	return g
}

// declare takes a type, unless it is an interface, with its constants.
func (g *generator) declare(pkg string, d *doc.Type) {
	t := &goType{pkg: pkg, name: d.Name, doc: said(d.Name, d.Doc), expr: d.Decl.Specs[0].(*ast.TypeSpec).Type}
	if _, is := t.expr.(*ast.InterfaceType); is {
		return
	}
	g.types[t.String()] = t
	named := g.Names[t.String()]
	t.component = cmp.Or(named, t.name)
	if named != "" || g.made[t.component] == nil {
		g.made[t.component] = t
	}
	for _, group := range d.Consts {
		for _, s := range group.Decl.Specs {
			for _, v := range s.(*ast.ValueSpec).Values {
				if text, ok := v.(*ast.BasicLit); ok && text.Kind == token.STRING {
					t.values = append(t.values, must(strconv.Unquote(text.Value)))
				}
			}
		}
	}
}

// said is the first paragraph of a comment, as a sentence about what has the name.
func said(name, comment string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(comment), "\n\n")
	s := regexp.MustCompile(`^(An? )?`+name+` (is|are) `).ReplaceAllString(strings.Join(strings.Fields(first), " "), "")
	if s == "" {
		return ""
	}
	word, _, _ := strings.Cut(s, " ")
	if !strings.ContainsFunc(strings.TrimRight(word, ",:;"), func(r rune) bool { return !unicode.IsLetter(r) }) {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
