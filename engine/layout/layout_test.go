package layout_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/engine/layout"
	"wf/protocol"
)

var update = flag.Bool("update", false, "write the golden files")

func role(name string, action protocol.Action, mod ...func(*protocol.Role)) protocol.Role {
	r := protocol.Role{Name: name, Action: action}
	for _, m := range mod {
		m(&r)
	}
	return r
}

func edge(from, to string, mod ...func(*protocol.Edge)) protocol.Edge {
	e := protocol.Edge{From: strings.Split(from, " "), To: strings.Split(to, " ")}
	for _, m := range mod {
		m(&e)
	}
	return e
}

func when(s string) func(*protocol.Edge) { return func(e *protocol.Edge) { e.When = s } }

func limit(n int, then string) func(*protocol.Edge) {
	return func(e *protocol.Edge) { e.Limit, e.OnLimit = n, then }
}

func onFailure(e *protocol.Edge) { e.OnFailure = true }

var fixBug = &protocol.Workflow{
	Name: "fix-bug",
	Roles: []protocol.Role{
		role("coder", protocol.ActPrompt, func(r *protocol.Role) { r.Tools = []string{"read_file", "shell", "write_file"} }),
		role("gate", protocol.ActAsk, func(r *protocol.Role) { r.Ask = "Still failing. What now?" }),
		role("test", protocol.ActRun, func(r *protocol.Role) { r.Run = `go test "./$PACKAGE"` }),
	},
	Edges: []protocol.Edge{
		edge("START", "test"),
		edge("test", "END", when("output.exit_code == 0")),
		edge("test", "coder", limit(3, "gate")),
		edge("coder", "test", when(`output.status == "done"`)),
		edge("coder", "gate"),
		edge("gate", "coder", when(`output.choice == "retry"`), limit(2, "")),
		edge("gate", "FAIL"),
	},
}

var review = &protocol.Workflow{
	Name: "review",
	Roles: []protocol.Role{
		role("test", protocol.ActRun, func(r *protocol.Role) { r.Run = "go test ./..." }),
		role("writer", protocol.ActPrompt),
	},
	Edges: []protocol.Edge{
		edge("START", "writer"),
		edge("writer", "test"),
		edge("test", "END", when("output.exit_code == 0")),
		edge("test", "writer", when("output.exit_code != 0"), limit(3, "")),
	},
}

var everyKind = &protocol.Workflow{
	Name: "release",
	Roles: []protocol.Role{
		role("announce", protocol.ActPrompt),
		role("approve", protocol.ActAsk, func(r *protocol.Role) { r.Ask = "Ship it?" }),
		role("build", protocol.ActRun, func(r *protocol.Role) { r.Run = "make release" }),
		role("cool_down", protocol.ActWait, func(r *protocol.Role) { r.Wait = &protocol.Wait{For: "1h"} }),
		role("docs", protocol.ActPrompt, func(r *protocol.Role) { r.Tools = []string{"read_file", "write_file"} }),
		role("names", protocol.ActSet, func(r *protocol.Role) {
			r.Set = []protocol.NamedTemplate{{Name: "tag"}, {Name: "files"}}
		}),
		role("publish", protocol.ActWorkflow),
		role("repair", protocol.ActPrompt),
	},
	Edges: []protocol.Edge{
		edge("START", "names"),
		edge("names", "build docs"),
		edge("build", "repair", onFailure, limit(2, "FAIL")),
		edge("repair", "build"),
		edge("docs", "docs", when("output.missing > 0"), limit(4, "")),
		edge("build docs", "approve"),
		edge("approve", "cool_down", when(`output.choice == "later"`), limit(5, "")),
		edge("approve", "publish", when(`output.choice == "ship"`), func(e *protocol.Edge) { e.ForEach = "steps.names.output.files" }),
		edge("approve", "FAIL"),
		edge("cool_down", "approve"),
		edge("publish", "announce"),
		edge("announce", "END"),
	},
}

var hostile = &protocol.Workflow{
	Name: `"><script>alert(1)</script>`,
	Roles: []protocol.Role{
		role(`<script>"'&`, protocol.ActRun, func(r *protocol.Role) { r.Run = "echo \x1b[31m `x` ]]> <!-- \u202e" }),
		role(strings.Repeat("very-long-", 30), protocol.ActPrompt),
		role("日本語のとても長い役割の名前です", protocol.ActAsk, func(r *protocol.Role) { r.Ask = "続けますか？ <b>" }),
	},
	Edges: []protocol.Edge{
		edge("START", `<script>"'&`),
		edge(`<script>"'&`, "日本語のとても長い役割の名前です", when(`output.text == "</style><img src=x>" && output.ok`)),
		edge("日本語のとても長い役割の名前です", strings.Repeat("very-long-", 30), limit(2, "FAIL")),
		edge(strings.Repeat("very-long-", 30), `<script>"'&`, limit(9, "END"), when("output.x > 1 | \"`\"")),
		edge(strings.Repeat("very-long-", 30), "END nowhere"),
	},
}

func half() layout.Overlay {
	return layout.Overlay{
		Visits: map[string]int{"test": 3, "coder": 2, "gate": 1},
		Taken:  map[int]int{0: 1, 2: 2, 3: 2},
		Status: map[string]string{"test": "ok", "coder": "ok", "gate": "waiting"},
	}
}

var pictures = []struct {
	name string
	w    *protocol.Workflow
	o    layout.Overlay
}{
	{"fix-bug", fixBug, layout.Overlay{}},
	{"fix-bug-run", fixBug, half()},
	{"review", review, layout.Overlay{}},
	{"release", everyKind, layout.Overlay{}},
	{"hostile", hostile, layout.Overlay{}},
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s changed (-want +got; go test -update accepts it):\n%s", path, diff)
	}
}

func TestPicturesAreAsDrawn(t *testing.T) {
	for _, p := range pictures {
		t.Run(p.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := layout.Of(p.w).SVG(&b, p.o); err != nil {
				t.Fatal(err)
			}
			golden(t, p.name+".svg", b.Bytes())
		})
	}
	_ = fmt.Sprint
	_ = xml.Header
	_ = errors.New
	_ = io.EOF
	_ = displaywidth.String
	_ = rapid.Check
}
