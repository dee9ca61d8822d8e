package files

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parsed are the declarations of a file as the parser of Go finds them.
func parsed(text string) []int {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	starts := []int{0}
	for _, d := range file.Decls {
		at := d.Pos()
		var doc *ast.CommentGroup
		switch d := d.(type) {
		case *ast.FuncDecl:
			doc = d.Doc
		case *ast.GenDecl:
			if doc = d.Doc; d.Tok == token.IMPORT {
				continue
			}
		}
		if doc != nil {
			at = doc.Pos()
		}
		starts = append(starts, set.PositionFor(at, false).Line-1)
	}
	return starts
}

// The tokens of a file tell its declarations as the parser of Go does: of each file of this module and of odd ones.
func TestDeclarationsAreThoseOfTheParser(t *testing.T) {
	texts := map[string]string{
		"behind":     "package p\n\nvar a = 1 // of a\nfunc f() {}\n",
		"apart":      "package p\n\n// of nothing\n\nfunc f() {}\n",
		"block":      "package p\n\n/* one\ntwo */\nfunc f() {}\n/* a */ /* b */ var x int\n",
		"one line":   "package p; func f() {}; var x = func() int { return 1 }()\n",
		"raw":        "package p\nvar a = `\nfunc g() {}\n`\n\n// f\n// does\nfunc f() {}\n",
		"inner":      "package p\nfunc f() {\n\tvar x int\n\ttype y struct{ z func() }\n}\n",
		"grouped":    "package p\nimport (\n\t\"a\"\n)\n// c\nconst (\n\ta = iota\n\tb\n)\ntype (\n\tx int\n)\n",
		"generic":    "package p\nfunc f[T any](x []T) map[string]T { return nil }\ntype l[T any] struct{ next *l[T] }\n",
		"line":       "package p\n//line other.go:100\nfunc f() {}\n",
		"no package": "func f() {}\n",
		"open":       "package p\nfunc f() {\n",
		"empty":      "",
		"comment":    "// only\n",
		"hash":       "package p\n# x\n",
		"windows":    "package p\r\n\r\n// f\r\nfunc f() {}\r\n",
	}
	top := "../../.."
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), "node_modules") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ".go") {
			b, err := os.ReadFile(path)
			texts[path] = string(b)
			return err
		}
		return nil
	})
	if err != nil || len(texts) < 1000 {
		t.Fatalf("%d files, %v", len(texts), err)
	}
	for name, text := range texts {
		if diff := cmp.Diff(parsed(text), declarations(text)); diff != "" {
			t.Errorf("%s (-parser +tokens):\n%s", name, diff)
		}
	}
}
