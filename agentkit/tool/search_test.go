package tool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wf/agentkit/tool"
)

func TestSearch(t *testing.T) {
	dir := t.TempDir()
	at := tool.Workspace{Dir: dir}
	for name, content := range map[string]string{
		"main.go":               "package main\n\nfunc main() { run() }\n",
		"lib/run.go":            "package lib\n\nfunc run() {}\r\n// the end",
		"lib/run_test.go":       "func TestRun() { run() }\n",
		"web/a.ts":              "run()\n",
		"web/b.tsx":             "run()\n",
		"web/c.css":             "run {}\n",
		".gitignore":            "*.log\n/dist/\n",
		"x.log":                 "run()\n",
		"dist/out.go":           "func run() {}\n",
		"lib/gen/.gitignore":    "*\n!keep.go\n",
		"lib/gen/a.go":          "run()\n",
		"lib/gen/keep.go":       "run()\n",
		".git/config":           "run()\n",
		".git/info/exclude":     "private.txt\n",
		"private.txt":           "run()\n",
		".github/ci.yaml":       "run: x\n",
		"bin":                   "run()\x00run()\n",
		"we[ird].txt":           "a run\n",
		"node_modules/m/x.js":   "run()\n",
		"web/.gitignore":        "node_modules\n",
		"web/node_modules/y.js": "run()\n",
	} {
		write(t, dir, name, content)
	}
	for _, c := range []struct {
		name string
		args args
		want string
		err  bool
	}{
		{"lines in the order of the paths; no binary, no .git, nothing ignored", args{"pattern": `\brun\b`},
			".github/ci.yaml:1: run: x\nlib/gen/keep.go:1: run()\nlib/run.go:3: func run() {}\nlib/run_test.go:1: func TestRun() { run() }\n" +
				"main.go:3: func main() { run() }\nnode_modules/m/x.js:1: run()\nwe[ird].txt:1: a run\nweb/a.ts:1: run()\nweb/b.tsx:1: run()\nweb/c.css:1: run {}\n", false},
		{"below a directory", args{"pattern": "run", "path": "lib", "glob": "*.go"},
			"lib/gen/keep.go:1: run()\nlib/run.go:3: func run() {}\nlib/run_test.go:1: func TestRun() { run() }\n", false},
		{"a glob that excludes", args{"pattern": "run", "path": "lib", "glob": "!*_test.go"}, "lib/gen/keep.go:1: run()\nlib/run.go:3: func run() {}\n", false},
		{"a glob with braces", args{"pattern": "run", "glob": "web/*.{ts,tsx}"}, "web/a.ts:1: run()\nweb/b.tsx:1: run()\n", false},
		{"a glob over directories", args{"pattern": "run", "glob": "web/**"}, "web/a.ts:1: run()\nweb/b.tsx:1: run()\nweb/c.css:1: run {}\n", false},
		{"a glob that is a directory", args{"pattern": "main", "glob": "lib"}, "no line matches in 3 files\n", false},
		{"one file, though it is ignored", args{"pattern": "run", "path": "x.log"}, "x.log:1: run()\n", false},
		{"a directory, though it is ignored", args{"pattern": "run", "path": "dist"}, "dist/out.go:1: func run() {}\n", false},
		{"ends of lines, CRLF too", args{"pattern": `\{\}$`, "path": "lib/run.go"}, "lib/run.go:3: func run() {}\n", false},
		{"a last line without an end", args{"pattern": "(?i)THE END"}, "lib/run.go:4: // the end\n", false},
		{"no more than asked for", args{"pattern": "run", "path": "web", "max": 2},
			"web/a.ts:1: run()\nweb/b.tsx:1: run()\n…[1 more lines; 3 lines in 3 files in all]\n", false},
		{"a bad pattern", args{"pattern": "a(?=b)"},
			"error: invalid or unsupported Perl syntax: `(?=` (RE2 has neither look-around nor back-references; a backslash makes a character plain)", true},
		{"an empty pattern", args{"pattern": ""}, "error: pattern is empty", true},
		{"a glob that cannot match", args{"pattern": "x", "glob": "{a"}, `error: glob "{a" can match no file`, true},
		{"a binary file", args{"pattern": "x", "path": "bin"}, "error: bin is binary", true},
		{"a missing path", args{"pattern": "x", "path": "none"}, "error: none: no such file or directory", true},
		{"a path outside", args{"pattern": "x", "path": "../x"}, "error: ../x lies outside of the workspace; use paths relative to it", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := call(t, at, "search", c.args); r.Content != c.want || r.IsError != c.err {
				t.Errorf("gives (error: %v)\n%s\nwant\n%s", r.IsError, r.Content, c.want)
			}
		})
	}
}

func TestB07SearchIsBounded(t *testing.T) {
	dir := t.TempDir()
	at := tool.Workspace{Dir: dir}
	long := strings.Repeat("x", 700<<10)
	write(t, dir, "long.js", long+"needle"+long+"needle"+long+"\nneedle\n")
	write(t, dir, "many.txt", strings.Repeat("a needle in a line that is not short at all, but rather long\n", 5_000))
	write(t, dir, "most.txt", strings.Repeat("needle\n", 50_000))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := call(t, at, "search", args{"pattern": "needle", "path": "long.js"})
	lines := strings.Split(strings.TrimSpace(r.Content), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "long.js:1: …xxx") || !strings.Contains(lines[0], "needle") ||
		!strings.HasSuffix(lines[0], "x…") || len(lines[0]) > 400 || lines[1] != "long.js:2: needle" {
		t.Errorf("a long line gives %q", r.Content)
	}
	r = call(t, at, "search", args{"pattern": "needle", "path": "many.txt", "max": 1000})
	if n := strings.Count(r.Content, "\nmany.txt:"); len(r.Content) > tool.SearchMax+200 || n < 200 ||
		!strings.HasSuffix(r.Content, fmt.Sprintf("…[%d more lines; 5000 lines in 1 files in all]\n", 5000-n-1)) {
		t.Errorf("many lines give %d bytes: %s", len(r.Content), r.Content[max(0, len(r.Content)-200):])
	}
	if r = call(t, at, "search", args{"pattern": "needle"}); !strings.HasSuffix(r.Content, "…[more than 10000 more lines; narrow pattern, path or glob]\n") {
		t.Errorf("most lines give %s", r.Content[max(0, len(r.Content)-200):])
	}
	if r = call(t, at, "search", args{"pattern": "x", "path": "pipe"}); !r.IsError || r.Content != "error: pipe is no regular file" {
		t.Errorf("a pipe gives %q", r.Content)
	}
	if r = call(t, at, "read_file", args{"path": "pipe"}); !r.IsError {
		t.Errorf("reading a pipe gives %q", r.Content)
	}
}

func TestSearchHidesSecrets(t *testing.T) {
	dir := t.TempDir()
	const secret = "s3cr3t-of-the-house"
	at := tool.Workspace{Dir: dir, Clean: func(s string) string { return strings.ReplaceAll(s, secret, "[secret:S]") }}
	pad := strings.Repeat("x", 290)
	write(t, dir, "a.txt", "password="+secret+"\n"+pad+secret+pad+"\n"+secret+pad+" password\n")
	r := call(t, at, "search", args{"pattern": "s3cr3t|password|xx"})
	if strings.Contains(r.Content, "s3cr3t") || strings.Contains(r.Content, "house") || !strings.Contains(r.Content, "[secret:S]") {
		t.Errorf("gives %s", r.Content)
	}
	body := strings.Repeat(strings.Repeat("MIIEvQIB", 8)+"\n", 5)
	key := "-----BEGIN PRIVATE KEY-----\n" + body + "Zm9v\n-----END PRIVATE KEY-----\n"
	write(t, dir, "key.pem", "MIIEvQIBfirst\n"+key+"MIIEvQIBafter\n")
	if r = call(t, at, "search", args{"pattern": "MIIEvQIB|Zm9v", "path": "key.pem"}); r.Content != "key.pem:1: MIIEvQIBfirst\nkey.pem:10: MIIEvQIBafter\n" {
		t.Errorf("a key gives %q", r.Content)
	}
	if r = call(t, at, "read_file", args{"path": "key.pem", "start_line": 4}); r.Content != "[redacted:private_key]\nMIIEvQIBafter\n" {
		t.Errorf("the end of a key reads as %q", r.Content)
	}
	quoted := "> MIIEvQIBfirst\n> " + strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n> ") + "\n> after\n"
	write(t, dir, "mail.txt", quoted)
	if r = call(t, at, "read_file", args{"path": "mail.txt", "start_line": 4}); r.Content != "[redacted:private_key]\n> after\n" {
		t.Errorf("the end of a quoted key reads as %q", r.Content)
	}
	if r = call(t, at, "search", args{"pattern": "MIIEvQIB|after", "path": "mail.txt"}); r.Content != "mail.txt:1: > MIIEvQIBfirst\nmail.txt:10: > after\n" {
		t.Errorf("a quoted key gives %q", r.Content)
	}
	write(t, dir, "key.go", "const begin = \"-----BEGIN PRIVATE KEY-----\"\n\nfunc f() {}\n")
	if r = call(t, at, "read_file", args{"path": "key.go", "start_line": 2}); r.Content != "\nfunc f() {}\n" {
		t.Errorf("a program that knows keys reads as %q", r.Content)
	}
}

func TestSearchStops(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "x\n")
	tools, err := tool.Named([]string{"search"}, tool.All())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tools[0].Run(ctx, tool.Workspace{Dir: dir}, []byte(`{"pattern":"x"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("gives %v", err)
	}
}

func TestSearchTellsWhatItCannotRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is hidden from root")
	}
	dir := t.TempDir()
	write(t, dir, "a", "x\n")
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	if r := call(t, tool.Workspace{Dir: dir}, "search", args{"pattern": "x"}); r.Content != "no line matches in 0 files\n…[1 files or directories could not be read]\n" {
		t.Errorf("gives %q", r.Content)
	}
}

func BenchmarkSearch(b *testing.B) {
	dir := b.TempDir()
	text := bytes.Repeat([]byte("func (v *visit) result(call, content string, isError bool) {\n\tv.tail = append(v.tail, m)\n}\n"), 2_000)
	for i := range 50 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), text, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	tools, err := tool.Named([]string{"search"}, tool.All())
	if err != nil {
		b.Fatal(err)
	}
	for name, args := range map[string]string{"literal": `{"pattern":"nowhere to be found"}`, "expression": `{"pattern":"no[wx]here\\b"}`, "any": `{"pattern":"[xyz]here\\b"}`} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(50 * len(text)))
			for b.Loop() {
				if _, err := tools[0].Run(b.Context(), tool.Workspace{Dir: dir}, []byte(args)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
