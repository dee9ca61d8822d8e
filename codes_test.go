package wf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"wf/protocol"
)

// ofTheCommandLine are codes that no server answers with: they are about a server that was not reached, did not
// start, or is not there, and about what works on the files of a machine alone.
var ofTheCommandLine = map[string]bool{
	"insecure_listen": true, "address_in_use": true, "no_daemon": true, "foreign_server": true, "server_unreachable": true, "not_ready": true, "restore_open": true,
	"not_bisectable": true, "limit_reached": true, "git": true, "nothing_staged": true, "trials_open": true,
}

// Each code that is declared in what a server is made of is in the table of codes, with a status and what to do,
// and each code of the table is declared.
func TestEveryCodeOfAnErrorIsInTheTable(t *testing.T) {
	declared := declaredCodes(t)
	listed := map[string]bool{}
	for _, c := range protocol.Codes() {
		if listed[c.Name] {
			t.Errorf("%s is in the table twice", c.Name)
		}
		listed[c.Name] = true
		if declared[c.Name] == "" {
			t.Errorf("%s is in the table of protocol/codes.go, and no error has it", c.Name)
		}
		if c.Status < 400 || c.Status > 599 || c.Do == "" || strings.Contains(c.Do, "wf ") || strings.Contains(c.Do, "--") {
			t.Errorf("%s: status %d, what to do is %q", c.Name, c.Status, c.Do)
		}
		switch c.Remedy {
		case protocol.Again, protocol.Look, protocol.Mend, protocol.Owner:
		default:
			t.Errorf("%s has the remedy %q", c.Name, c.Remedy)
		}
	}
	for code, at := range declared {
		if !listed[code] && !ofTheCommandLine[code] {
			t.Errorf("%s: the code %s is not in the table of protocol/codes.go", at, code)
		}
	}
	for code := range ofTheCommandLine {
		if declared[code] == "" || listed[code] {
			t.Errorf("%s is no code of the command line alone", code)
		}
	}
	if c := protocol.CodeNamed("made_up"); c.Name != "internal" || c.Status != 500 {
		t.Errorf("a code that is not listed is %+v", c)
	}
}

// declaredCodes are the codes that are written in the source outside of cmd, with where.
func declaredCodes(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := sources(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.test() || strings.HasPrefix(f.name, "cmd/") || strings.Contains(f.name, "test/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			made, ok := n.(*ast.CompositeLit)
			if !ok || !isError(made.Type, parsed.Name.Name) {
				return true
			}
			for i, e := range made.Elts {
				if pair, named := e.(*ast.KeyValueExpr); named {
					if key, ok := pair.Key.(*ast.Ident); !ok || key.Name != "Code" {
						continue
					}
					e = pair.Value
				} else if i > 0 {
					break
				}
				if text, ok := e.(*ast.BasicLit); ok {
					code, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					out[code] = f.name
				}
			}
			return true
		})
	}
	return out
}

// isError reports whether an expression is the type protocol.Error.
func isError(e ast.Expr, pkg string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return pkg == "protocol" && e.Name == "Error"
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && x.Name == "protocol" && e.Sel.Name == "Error"
	}
	return false
}
