package main

import (
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
	component      string // that is made of it
	expr           ast.Expr
	values         []any // the constants of a string type
}

func (t *goType) String() string { return t.pkg + "." + t.name }

// generator holds what was read, and the components that were made of it.
type generator struct {
	types      map[string]*goType // by api.Run
	made       map[string]*goType // by their components
	components map[string]*component

	Names           map[string]string // these are overrides.yaml
	Schemas, Fields map[string]schema
	Nullable        map[string]bool
}

// read parses the packages and the overrides.
func read(root string) *generator {
	g := &generator{types: map[string]*goType{}, made: map[string]*goType{}, components: map[string]*component{}}
	must(0, yaml.Load(must(os.ReadFile(filepath.Join(root, overrides))), g, yaml.WithKnownFields()))
	for _, dir := range packages {
		for _, name := range must(filepath.Glob(filepath.Join(root, dir, "*.go"))) {
			f := must(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution))
			if !strings.HasSuffix(name, "_test.go") {
				g.declare(path.Base(dir), f)
			}
		}
	}
	for component, name := range g.Names {
		if t := g.types[name]; t != nil { // else used tells
			t.component, g.made[component] = component, t
		}
	}
	for _, dir := range packages {
		for _, t := range g.types {
			if t.pkg == path.Base(dir) && t.expr != nil && g.made[t.component] == nil {
				g.made[t.component] = t
			}
		}
	}
	return g
}

// declare takes the types of a file but for interfaces, and their constants.
func (g *generator) declare(pkg string, f *ast.File) {
	at := func(name string) *goType {
		if g.types[pkg+"."+name] == nil {
			g.types[pkg+"."+name] = &goType{pkg: pkg, name: name, component: name}
		}
		return g.types[pkg+"."+name]
	}
	for _, d := range f.Decls {
		d, _ := d.(*ast.GenDecl)
		if d == nil {
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
				of, typed := s.Type.(*ast.Ident)
				if d.Tok != token.CONST || !typed || len(s.Values) == 0 {
					continue
				}
				if text, ok := s.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
					at(of.Name).values = append(at(of.Name).values, must(strconv.Unquote(text.Value)))
				}
			}
		}
	}
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
