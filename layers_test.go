// Package wf_test holds the tests of the tree as a whole: its layers, and what its papers claim.
package wf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// may lists, for each layer, the layers that its code may import besides itself. A layer is a
// directory with everything below it, unless that is a layer of its own.
//
//	cmd/wf ─► engine ──► roles, cas, api ─► protocol
//	   ├────► agentkit ─► roles ─────► protocol
//	   ├────► hub ───────► api ──────► protocol
//	   ├────► cmd/internal/render ─► api, cas (decoding) ─► protocol
//	   ├────► cmd/internal/chat, …/tui ─► cmd/internal, api ─► protocol
//	   └────► cmd/internal (texts of screens) ─► protocol
var may = map[string][]string{
	"protocol":  {},
	"files":     {},
	"metrics":   {},
	"api":       {"protocol"},
	"cas":       {"files", "protocol"},
	"postgres":  {"protocol"}, // connections to a server; what its tables are is said by those that keep something there
	"pgstore":   {"postgres", "cas", "protocol"},
	"store":     {"pgstore", "engine", "files", "cas", "protocol"},
	"roles":     {"roles/workspace", "files", "protocol"},
	"agentkit":  {"roles", "roles/workspace", "files", "protocol"},
	"engine":    {"roles", "roles/workspace", "cas", "api", "protocol"},
	"service":   {"store", "files", "engine", "agentkit", "roles", "roles/workspace", "cas", "api", "protocol"},
	"daemon":    {"service", "store", "files", "metrics", "engine", "cas", "hub", "api", "protocol"},
	"hub":       {"postgres", "files", "metrics", "api", "protocol"}, // its queue may lie in a database
	"workflows": {},
	"examples":  {"service", "store", "daemon", "files", "engine", "agentkit", "hub", "roles", "roles/workspace", "cas", "api", "protocol", "workflows"},
	"release":   {}, // makes packages of the program that it builds
	"cmd":       {"daemon", "service", "store", "files", "engine", "agentkit", "hub", "cmd/internal", "cmd/internal/ask", "cmd/internal/complete", "cmd/internal/help", "cmd/internal/render", "cmd/internal/chat", "cmd/internal/tui", "roles", "roles/workspace", "cas", "api", "protocol", "workflows"},

	"cmd/internal":          {"protocol"}, // how a screen is drawn knows no store and no engine
	"cmd/internal/help":     {"cmd/internal", "cmd/internal/render", "protocol"},
	"cmd/internal/ask":      {"cmd/internal", "cmd/internal/render", "roles", "api", "protocol"},
	"cmd/internal/complete": {"cmd/internal", "cmd/internal/render", "api", "protocol"},
	"cmd/internal/render":   {"cmd/internal", "roles", "cas", "api", "protocol"}, // of these only few, see below

	"cmd/internal/chat": {"cmd/internal", "cmd/internal/ask", "cmd/internal/render", "api", "protocol"}, // what is shown of runs is read by interfaces of api
	"cmd/internal/tui":  {"cmd/internal", "cmd/internal/ask", "cmd/internal/render", "api", "protocol"},

	"roles/workspace": {"protocol"}, // what touches files of agents knows nothing that could act on them
}

// layerOf is the layer of a file or of a package's path.
func layerOf(name string) string {
	for _, inner := range []string{"cmd/internal/chat", "cmd/internal/tui", "cmd/internal/ask", "cmd/internal/complete", "cmd/internal/help", "cmd/internal/render", "cmd/internal", "roles/workspace"} {
		if strings.HasPrefix(name+"/", inner+"/") {
			return inner
		}
	}
	layer, _, _ := strings.Cut(name, "/")
	return layer
}

// mayTest is what tests may import besides: the tests that join layers, which nothing can
// import in turn, and the servers and suites that exist for tests.
var mayTest = map[string][]string{
	"workflows": {"engine", "agentkit", "roles", "cas", "api", "protocol"},
	"daemon":    {"roles", "pgstore"},
	"engine":    {"agentkit", "pgstore"},
	"hub":       {"cas", "pgstore"}, // a server to work with
	"cmd":       {"pgstore"},        // a database to work with

	"cmd/internal/help": {"engine"}, // the page of the language
	"cmd/internal/chat": {"cas"},    // events as they are stored
}

// core are the packages that decide: they must not reach for the clock, the environment, the
// disk, the net or chance through these packages of the standard library.
var core = map[string][]string{
	"engine/lang":   {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec"},
	"engine/lint":   {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "time"},
	"engine/layout": {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "time"},
	"engine/yaml":   {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec"},
	"engine/rules":  {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "time", "sync", "context"},
	"api":           {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "time"},
	"protocol":      {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec"},

	"agentkit/prompt": {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "time", "sync", "context"},
	"agentkit/task":   {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "sync", "context"},

	"protocol/dagcbor": {"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "time", "sync", "context"},
}

// only are the packages of ours that a package imports besides, where its layer may import more: what an
// agent is sent follows from records, and no config, tool or model has a part in it; what the rules read
// comes in by an interface, and no store with it; what is rendered was read before, and cas decodes it.
var only = map[string][]string{
	"engine/rules":    {"engine/lang", "protocol", "roles/frontmatter"},
	"agentkit/prompt": {"agentkit/task", "protocol", "roles/frontmatter"},
	"agentkit/task":   {"protocol"},

	"cmd/internal/render": {"cmd/internal/plain", "roles/frontmatter", "cas", "api", "protocol", "protocol/lazy"},

	"protocol/dagcbor": {},
}

// file is a Go source file with what it imports.
type file struct {
	name    string
	imports []string
}

func (f file) test() bool { return strings.HasSuffix(f.name, "_test.go") }

// sources parses the imports of every Go file below root, as the go command finds them:
// testdata, and what begins with _ or a dot, is left out.
func sources(root fs.FS) ([]file, error) {
	var out []file
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case name != "." && (base[0] == '_' || base[0] == '.' || d.IsDir() && base == "testdata"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := file{name: name}
		for _, i := range parsed.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, p)
		}
		out = append(out, f)
		return nil
	})
	return out, err
}

// breaches lists the imports that the layers forbid, sorted.
func breaches(files []file) []string {
	var out []string
	for _, f := range files {
		layer := layerOf(f.name)
		allowed, known := may[layer]
		if !strings.Contains(f.name, "/") && f.test() {
			continue // this test
		}
		if !known {
			out = append(out, f.name+" lies in no layer; the layers are "+strings.Join(slices.Sorted(maps.Keys(may)), ", "))
			continue
		}
		if f.test() {
			allowed = append(slices.Clone(allowed), mayTest[layer]...)
		}
		for _, p := range f.imports {
			if target, ours := strings.CutPrefix(p, "wf/"); ours {
				to := layerOf(target)
				if to != layer && !slices.Contains(allowed, to) {
					out = append(out, f.name+" imports "+p+": "+layer+" may import "+strings.Join(append(slices.Clone(may[layer]), "nothing else of ours"), ", "))
				} else if few, pure := only[path.Dir(f.name)]; pure && !f.test() && !slices.Contains(few, target) {
					out = append(out, f.name+" imports "+p+": "+path.Dir(f.name)+" may import "+strings.Join(append(slices.Clone(few), "nothing else of ours"), ", "))
				}
			}
			if !f.test() && slices.Contains(core[path.Dir(f.name)], p) {
				out = append(out, f.name+" imports "+p+": "+path.Dir(f.name)+" is pure")
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestTheArrowsBetweenLayersAreKept(t *testing.T) {
	files, err := sources(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		seen[layerOf(f.name)] = true
	}
	for layer := range may {
		if !seen[layer] {
			t.Errorf("the layer %s has no file: is this the root of the module?", layer)
		}
	}
	for _, b := range breaches(files) {
		t.Error(b)
	}
}

// What the root of agentkit reaches, through whatever it imports of ours, holds no store: an
// agent cannot write history.
func TestAnAgentCannotReachTheStore(t *testing.T) {
	files, err := sources(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for _, f := range files {
		if pkg := path.Dir(f.name); !f.test() {
			imports[pkg] = append(imports[pkg], f.imports...)
		}
	}
	reached, todo := map[string]string{"agentkit": ""}, []string{"agentkit"}
	for len(todo) > 0 {
		pkg := todo[0]
		todo = todo[1:]
		for _, p := range imports[pkg] {
			target, ours := strings.CutPrefix(p, "wf/")
			if _, known := reached[target]; ours && !known {
				reached[target] = pkg
				todo = append(todo, target)
			}
			if strings.HasPrefix(p, "go.etcd.io/bbolt") {
				t.Errorf("%s imports %s", pkg, p)
			}
		}
	}
	for pkg, by := range reached {
		if pkg == "cas" || strings.HasPrefix(pkg, "cas/") || pkg == "engine" || strings.HasPrefix(pkg, "engine/") {
			t.Errorf("agentkit reaches %s by way of %s", pkg, by)
		}
	}
}

// A connection to a database is opened in one place, which says where names are looked up: nothing else knows how. Servers of tests are asked as the
// tests want.
func TestDatabasesAreReachedInOnePlace(t *testing.T) {
	files, err := sources(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range files {
		for _, p := range f.imports {
			if f.test() || !strings.HasPrefix(p, "github.com/jackc/") && p != "database/sql" || strings.HasPrefix(f.name, "pgstore/pgtest/") {
				continue
			}
			if found = true; path.Dir(f.name) != "postgres" {
				t.Errorf("%s imports %s: package postgres opens connections, and pins what their names mean", f.name, p)
			}
		}
	}
	if !found {
		t.Error("nothing reaches a database: is this the root of the module?")
	}
}

// readsChunks lists what reads or writes payloads on its own, outside of protocol and cas: it
// would miss one of the two forms that a payload has.
func readsChunks(root fs.FS, files []file) ([]string, error) {
	var out []string
	for _, f := range files {
		if f.test() || layerOf(f.name) == "protocol" || layerOf(f.name) == "cas" {
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
		ast.Inspect(parsed, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"protocol.Chunks", "protocol.KindChunks", "protocol.ChunkSize", "cas.Raw"}, pkg.Name+"."+sel.Sel.Name) {
				out = append(out, f.name+" uses "+sel.Sel.Name+": protocol.ReadPayload reads payloads, cas.Payload writes them")
			}
			return true
		})
	}
	return out, nil
}

func TestPayloadsHaveOneReaderAndOneWriter(t *testing.T) {
	root := os.DirFS(".")
	files, err := sources(root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := readsChunks(root, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
	second := fstest.MapFS{"engine/a.go": {Data: []byte("package engine\nvar c protocol.Chunks\nvar b = cas.Raw(nil)")}}
	if files, err = sources(second); err != nil {
		t.Fatal(err)
	}
	if found, err = readsChunks(second, files); err != nil || len(found) != 2 {
		t.Errorf("a second reader is not found: %v, %v", found, err)
	}
}

// A head of CBOR has its major type above the lowest five bits.
var headOfCBOR = regexp.MustCompile(`>>=?\s*5\b|&\s*(31|0x1f)\b`)

func TestHeadsOfCBORHaveOneReader(t *testing.T) {
	files, err := sources(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	readers := map[string]bool{}
	for _, f := range files {
		if f.test() || !slices.Contains([]string{"protocol", "cas", "hub", "engine"}, layerOf(f.name)) {
			continue
		}
		src, err := os.ReadFile(f.name)
		if err != nil {
			t.Fatal(err)
		}
		if headOfCBOR.Match(src) {
			readers[path.Dir(f.name)] = true
		}
	}
	if want := map[string]bool{"protocol/dagcbor": true}; !maps.Equal(readers, want) {
		t.Errorf("heads of CBOR are taken apart in %v: dagcbor.Walk reads them", slices.Sorted(maps.Keys(readers)))
	}
}

func TestAForbiddenArrowIsFound(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"agentkit/agent.go", "package agentkit\nimport _ \"wf/cas\"", "agentkit/agent.go imports wf/cas: agentkit may import roles, roles/workspace, files, protocol, nothing else of ours"},
		{"engine/drive.go", "package engine\nimport _ \"wf/agentkit/model\"", "engine/drive.go imports wf/agentkit/model: engine may import roles, roles/workspace, cas, api, protocol, nothing else of ours"},
		{"protocol/run.go", "package protocol\nimport _ \"wf/roles\"", "protocol/run.go imports wf/roles: protocol may import nothing else of ours"},
		{"engine/lint/a.go", "package lint\nimport _ \"time\"", "engine/lint/a.go imports time: engine/lint is pure"},
		{"agentkit/prompt/a.go", "package prompt\nimport _ \"time\"", "agentkit/prompt/a.go imports time: agentkit/prompt is pure"},
		{"agentkit/prompt/a.go", "package prompt\nimport _ \"sync\"", "agentkit/prompt/a.go imports sync: agentkit/prompt is pure"},
		{"agentkit/prompt/a.go", "package prompt\nimport _ \"wf/agentkit/tool\"", "agentkit/prompt/a.go imports wf/agentkit/tool: agentkit/prompt may import agentkit/task, protocol, roles/frontmatter, nothing else of ours"},
		{"agentkit/prompt/a_test.go", "package prompt\nimport _ \"wf/agentkit/prompt/prompttest\"", ""},
		{"engine/rules/a.go", "package rules\nimport _ \"sync\"", "engine/rules/a.go imports sync: engine/rules is pure"},
		{"engine/rules/a.go", "package rules\nimport _ \"wf/cas\"", "engine/rules/a.go imports wf/cas: engine/rules may import engine/lang, protocol, roles/frontmatter, nothing else of ours"},
		{"engine/rules/a.go", "package rules\nimport _ \"wf/engine\"", "engine/rules/a.go imports wf/engine: engine/rules may import engine/lang, protocol, roles/frontmatter, nothing else of ours"},
		{"engine/rules/a_test.go", "package rules\nimport _ \"wf/cas\"", ""},
		{"util/a.go", "package util", "util/a.go lies in no layer; the layers are agentkit, api, cas, cmd, cmd/internal, cmd/internal/ask, cmd/internal/chat, cmd/internal/complete, cmd/internal/help, cmd/internal/render, cmd/internal/tui, daemon, engine, examples, files, hub, metrics, pgstore, postgres, protocol, release, roles, roles/workspace, service, store, workflows"},
		{"cmd/internal/tui/a.go", "package tui\nimport _ \"wf/engine\"", "cmd/internal/tui/a.go imports wf/engine: cmd/internal/tui may import cmd/internal, cmd/internal/ask, cmd/internal/render, api, protocol, nothing else of ours"},
		{"cmd/internal/render/a.go", "package render\nimport _ \"wf/engine\"", "cmd/internal/render/a.go imports wf/engine: cmd/internal/render may import cmd/internal, roles, cas, api, protocol, nothing else of ours"},
		{"cmd/internal/render/a.go", "package render\nimport _ \"wf/cas/car\"", "cmd/internal/render/a.go imports wf/cas/car: cmd/internal/render may import cmd/internal/plain, roles/frontmatter, cas, api, protocol, protocol/lazy, nothing else of ours"},
		{"roles/workspace/a.go", "package workspace\nimport _ \"wf/roles\"", "roles/workspace/a.go imports wf/roles: roles/workspace may import protocol, nothing else of ours"},
		{"cas/a_test.go", "package cas\nimport _ \"wf/engine\"", "cas/a_test.go imports wf/engine: cas may import files, protocol, nothing else of ours"},
		{"cas/testdata/a.go", "package a\nimport _ \"wf/engine\"", ""},
		{"engine/a.go", "package engine\nimport (\n\"time\"\n_ \"wf/cas\"\n)", ""},
	} {
		files, err := sources(fstest.MapFS{c.name: {Data: []byte(c.src)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(breaches(files), "\n"); got != c.want {
			t.Errorf("%s:\nhave %s\nwant %s", c.name, got, c.want)
		}
	}
}
