package wf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"testing"
	"testing/fstest"
)

// starters are the files that start programs, each with what it starts. A program that starts in
// a workspace does there what agents have written, so nothing but the commands of roles and
// servers that a person trusts may, and git never outside of the sandbox.
var starters = map[string]string{
	"agentkit/sandbox/spawn_linux.go":                     "the launcher: this binary, in /",
	"agentkit/sandbox/launcher_linux.go":                  "a confined command",
	"agentkit/sandbox/overlay_linux.go":                   "the holder of layers: this binary, in /",
	"agentkit/sandbox/runs_linux.go":                      "what removes the directories of runs that have ended: this binary, in /",
	"roles/process.go":                                    "the command of a run role, or of a shell where the role says sandbox: off",
	"agentkit/mcp/program.go":                             "a server that a person trusts",
	"agentkit/modeltest/llama.go":                         "a model server, in tests",
	"pgstore/pgtest/program.go":                           "PostgreSQL and what lies before it, in directories of their own, in tests",
	"roles/workspace/workspacetest/unprivileged_linux.go": "a test program, in tests",
	"service/notify/desktop.go":                           "the program of the system that shows notifications, by its fixed path, in /",
	"cmd/wf/screenguard.go":                               "sh by its fixed path, in /, which puts the terminal back when wf is killed",
	"daemon/detach.go":                                    "this binary, for wf run --detach",
	"release/build.go":                                    "go, git and the wf that it built, in the checkout",
}

// starts are the ways in which the standard library starts a program.
var starts = map[string][]string{
	"os/exec":                  {"Command", "CommandContext", "Cmd"},
	"os":                       {"StartProcess"},
	"syscall":                  {"Exec", "ForkExec", "StartProcess"},
	"golang.org/x/sys/unix":    {"Exec"},
	"golang.org/x/sys/execabs": {"Command", "CommandContext", "Cmd"},
}

// startingFiles lists the files without tests that use one of starts in an expression that can
// start a program. The type exec.Cmd counts where a value of it is made.
func startingFiles(root fs.FS) ([]string, error) {
	files, err := sources(root)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, f := range files {
		if f.test() || !slices.ContainsFunc(f.imports, func(p string) bool { return starts[p] != nil }) {
			continue
		}
		src, err := fs.ReadFile(root, f.name)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		names := map[string][]string{} // of packages in this file
		for _, i := range parsed.Imports {
			p := i.Path.Value[1 : len(i.Path.Value)-1]
			name := path.Base(p)
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = starts[p]
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr: // *exec.Cmd is a type, not a value
				sel, ok := n.X.(*ast.SelectorExpr)
				return !ok || sel.Sel.Name != "Cmd"
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && slices.Contains(names[pkg.Name], n.Sel.Name) {
					found[f.name] = true
				}
			case *ast.ImportSpec:
				if n.Name != nil && n.Name.Name == "." && starts[n.Path.Value[1:len(n.Path.Value)-1]] != nil {
					found[f.name] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func TestProgramsAreStartedByFewFiles(t *testing.T) {
	found, err := startingFiles(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if starters[name] == "" {
			t.Errorf("%s starts a program: who may have written what it does there?", name)
		}
	}
	for name := range starters {
		if !slices.Contains(found, name) {
			t.Errorf("%s starts no program any more", name)
		}
	}
}

func TestAStartedProgramIsFound(t *testing.T) {
	for src, want := range map[string]bool{
		"package a\nimport \"os/exec\"\nvar c = exec.Command(\"git\")":          true,
		"package a\nimport e \"os/exec\"\nvar c = &e.Cmd{Path: \"git\"}":        true,
		"package a\nimport . \"os/exec\"\nvar c = Command(\"git\")":             true,
		"package a\nimport \"syscall\"\nvar f = syscall.ForkExec":               true,
		"package a\nimport \"os\"\nvar f = os.StartProcess":                     true,
		"package a\nimport \"os/exec\"\nvar e = exec.ErrNotFound":               false,
		"package a\nimport \"os/exec\"\nfunc f(c *exec.Cmd) { _ = c.String() }": false,
	} {
		found, err := startingFiles(fstest.MapFS{"engine/a.go": {Data: []byte(src)}})
		if err != nil {
			t.Fatal(err)
		}
		if (len(found) == 1) != want {
			t.Errorf("found %v in\n%s", found, src)
		}
	}
}
