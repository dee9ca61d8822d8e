package main

import (
	"fmt"
	"go/ast"
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

// goType is a type as it is declared.
type goType struct {
	pkg, name, doc string
	expr           ast.Expr
	values         []any // the constants of a string type
}

func (t *goType) String() string { return t.pkg + "." + t.name }

// generator holds what was read, and the components that were made of it.
type generator struct {
	types      map[string]*goType // by api.Run
	named      map[string]string  // component by type, where overrides.yaml gives it another name
	components map[string]*component

	Names           map[string]string // these are overrides.yaml
	Schemas, Fields map[string]schema
	Nullable        map[string]bool
}

// read parses the packages and the overrides.
func read(root string) (*generator, error) {
	g := &generator{types: map[string]*goType{}, named: map[string]string{}, components: map[string]*component{}}
	text, err := os.ReadFile(filepath.Join(root, overrides))
	if err == nil {
		err = yaml.Load(text, g, yaml.WithKnownFields())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w (it is read from the root of the module)", overrides, err)
	}
	for _, dir := range packages {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			if !strings.HasSuffix(name, "_test.go") {
				g.declare(path.Base(dir), f)
			}
		}
	}
	for component, name := range g.Names {
		if t := g.types[name]; t == nil || t.expr == nil {
			return nil, fmt.Errorf("%s: names: %s: there is no type %s in %v", overrides, component, name, packages)
		}
		g.named[name] = component
	}
	return g, nil
}

// declare takes the types of a file but for interfaces, and their constants.
func (g *generator) declare(pkg string, f *ast.File) {
	at := func(name string) *goType {
		if g.types[pkg+"."+name] == nil {
			g.types[pkg+"."+name] = &goType{pkg: pkg, name: name}
		}
		return g.types[pkg+"."+name]
	}
	for _, d := range f.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if _, is := s.Type.(*ast.InterfaceType); !is {
					t := at(s.Name.Name)
					t.expr, t.doc = s.Type, said(t.name, s.Doc, d.Doc)
				}
			case *ast.ValueSpec:
				of, ok := s.Type.(*ast.Ident)
				if d.Tok != token.CONST || !ok || len(s.Values) == 0 {
					continue
				}
				if text, ok := s.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
					value, _ := strconv.Unquote(text.Value) // it was parsed
					at(of.Name).values = append(at(of.Name).values, value)
				}
			}
		}
	}
}

// find is the type of a component, or nil.
func (g *generator) find(component string) *goType {
	if name := g.Names[component]; name != "" {
		return g.types[name]
	}
	for _, dir := range packages {
		name := path.Base(dir) + "." + component
		if t := g.types[name]; t != nil && t.expr != nil && g.named[name] == "" {
			return t
		}
	}
	return nil
}

// said is the first paragraph of the first comment that there is, as a sentence about what has the name.
func said(name string, comments ...*ast.CommentGroup) string {
	for _, c := range comments {
		first, _, _ := strings.Cut(strings.TrimSpace(c.Text()), "\n\n")
		if s := strings.Join(strings.Fields(first), " "); s != "" {
			s = regexp.MustCompile(`^(An? )?`+name+` (is|are) `).ReplaceAllString(s, "")
			word, _, _ := strings.Cut(s, " ")
			if !strings.ContainsFunc(strings.TrimRight(word, ",:;"), func(r rune) bool { return !unicode.IsLetter(r) }) {
				s = strings.ToUpper(s[:1]) + s[1:]
			}
			return strings.TrimSuffix(s, ".") + "."
		}
	}
	return ""
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
