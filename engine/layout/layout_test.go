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

// bounce has a way back whose label used to stand behind an arrow that it does not belong to, and a
// loop between others.
var bounce = &protocol.Workflow{
	Name: "bounce",
	Roles: []protocol.Role{
		role("left", protocol.ActRun, func(r *protocol.Role) { r.Run = "ls" }),
		role("plan", protocol.ActRun, func(r *protocol.Role) { r.Run = "ls" }),
	},
	Edges: []protocol.Edge{
		edge("START", "plan"),
		edge("plan", "left", when("output.exit_code == 0")),
		edge("left", "left", when("output.n < 2"), limit(2, "")),
		edge("left", "plan", when("output.exit_code >= 1"), limit(2, "")),
		edge("plan", "END", when("output.exit_code != 0")),
		edge("left", "END"),
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
		role("approve", protocol.ActAsk, func(r *protocol.Role) { r.Ask = "## **Ship it?**" }),
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

// delivery has what makes pictures hard: joins, loops that cross them, several bounds.
var delivery = &protocol.Workflow{
	Name: "delivery",
	Roles: []protocol.Role{
		role("coder", protocol.ActPrompt), role("deploy", protocol.ActWorkflow), role("fetch", protocol.ActRun),
		role("human", protocol.ActAsk), role("lint", protocol.ActRun), role("merge", protocol.ActSet),
		role("notify", protocol.ActPrompt), role("plan", protocol.ActPrompt), role("race", protocol.ActRun),
		role("reviewer", protocol.ActPrompt), role("rollback", protocol.ActRun), role("soak", protocol.ActWait),
		role("unit", protocol.ActRun), role("verify", protocol.ActRun), role("vet", protocol.ActRun),
	},
	Edges: []protocol.Edge{
		edge("START", "plan"), edge("plan", "fetch coder"),
		edge("fetch coder", "lint vet unit race"), edge("lint vet unit race", "merge"),
		edge("merge", "coder", when("output.failed > 0"), limit(3, "human")), edge("merge", "reviewer"),
		edge("reviewer", "coder", when(`output.verdict == "reject"`), limit(2, "human")),
		edge("reviewer", "human", when(`output.verdict == "unsure"`)), edge("reviewer", "deploy"),
		edge("human", "coder", when(`output.choice == "again"`), limit(2, "FAIL")),
		edge("human", "plan", when(`output.choice == "replan"`), limit(1, "FAIL")), edge("human", "FAIL"),
		edge("deploy", "soak"), edge("deploy", "rollback", onFailure), edge("soak", "verify"),
		edge("verify", "notify", when("output.exit_code == 0")), edge("verify", "rollback"),
		edge("rollback", "notify"), edge("notify", "END"),
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
		Taken:  map[protocol.Way]int{{Edge: 0, To: "test"}: 1, {Edge: 2, To: "coder"}: 2, {Edge: 2, To: "gate", Limit: true}: 1, {Edge: 3, To: "test"}: 2},
		Status: map[string]string{"test": "ok", "coder": "ok", "gate": "waiting"},
	}
}

// closing has always roles behind its ends.
var closing = &protocol.Workflow{
	Name: "closing",
	Roles: []protocol.Role{
		role("deploy", protocol.ActRun, func(r *protocol.Role) { r.Run = "./deploy.sh" }),
		role("report", protocol.ActPrompt),
		role("unlock", protocol.ActRun, func(r *protocol.Role) { r.Run = "./unlock.sh" }),
	},
	Edges: []protocol.Edge{
		{From: []string{"START"}, To: []string{"deploy"}},
		{From: []string{"deploy"}, To: []string{"END"}},
		{From: []string{"deploy"}, To: []string{"FAIL"}, OnFailure: true},
	},
	Always: []string{"unlock", "report"},
}

var pictures = []struct {
	name string
	w    *protocol.Workflow
	o    layout.Overlay
}{
	{"fix-bug", fixBug, layout.Overlay{}},
	{"fix-bug-run", fixBug, half()},
	{"review", review, layout.Overlay{}},
	{"bounce", bounce, layout.Overlay{}},
	{"release", everyKind, layout.Overlay{}},
	{"delivery", delivery, layout.Overlay{}},
	{"hostile", hostile, layout.Overlay{}},
	{"closing", closing, layout.Overlay{}},
	{"closing-run", closing, layout.Overlay{Visits: map[string]int{"deploy": 1, "unlock": 1}, Taken: map[protocol.Way]int{{Edge: 0, To: "deploy"}: 1}, Status: map[string]string{"deploy": "failed", "unlock": "ok"}}},
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
}

func TestTextAndMermaidAreAsWritten(t *testing.T) {
	for _, p := range pictures {
		if p.o.Visits != nil {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			g := layout.Of(p.w)
			var b bytes.Buffer
			for _, width := range []int{100, 60, 30} {
				fmt.Fprintf(&b, "%d columns\n", width)
				if err := g.ASCII(&b, width); err != nil {
					t.Fatal(err)
				}
			}
			golden(t, p.name+".txt", b.Bytes())
			b.Reset()
			if err := g.Mermaid(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, p.name+".mmd", b.Bytes())
		})
	}
}

// randomWorkflow draws names from a small set, so that loops, joins and names without a role
// are common.
func randomWorkflow(t *rapid.T) *protocol.Workflow {
	w := &protocol.Workflow{Name: rapid.String().Draw(t, "workflow")}
	actions := []protocol.Action{protocol.ActPrompt, protocol.ActRun, protocol.ActAsk, protocol.ActWorkflow, protocol.ActWait, protocol.ActSet}
	names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.StringMatching("[a-z]{1,8}"), rapid.StringN(1, 40, 90)), 1, 7, rapid.ID[string]).Draw(t, "names")
	for _, name := range names {
		r := role(name, rapid.SampledFrom(actions).Draw(t, "action"))
		r.Run, r.Ask = rapid.String().Draw(t, "run"), rapid.String().Draw(t, "ask")
		w.Roles = append(w.Roles, r)
	}
	pool := append([]string{"nobody"}, names...)
	some := func(label string, extra ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(append(extra, pool...)), 1, 3).Draw(t, label)
	}
	for range rapid.IntRange(0, 14).Draw(t, "edges") {
		w.Edges = append(w.Edges, protocol.Edge{
			From: some("from", "START"), To: some("to", "END", "FAIL"),
			When:    rapid.OneOf(rapid.Just(""), rapid.String()).Draw(t, "when"),
			Limit:   rapid.IntRange(0, 2).Draw(t, "limit"),
			OnLimit: rapid.SampledFrom(append([]string{"", "END", "SUSPEND"}, pool...)).Draw(t, "on_limit"),
		})
	}
	return w
}

func TestNothingOverlapsAndEveryEdgeIsDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomWorkflow(t)
		g := layout.Of(w)
		boxes := map[string]layout.Box{}
		for i, n := range g.Nodes {
			boxes[fmt.Sprintf("node %d %q", i, n.Name)] = layout.Box{X: n.X, Y: n.Y, W: n.W, H: n.H}
		}
		for i, a := range g.Arcs {
			if a.Label != "" {
				boxes[fmt.Sprintf("label %d %q", i, a.Label)] = a.LabelBox
			}
		}
		for name, a := range boxes {
			if a.X < 0 || a.Y < 0 || a.X+a.W > g.Width || a.Y+a.H > g.Height {
				t.Errorf("%s at %v lies outside %d × %d", name, a, g.Width, g.Height)
			}
			for other, b := range boxes {
				if name != other && a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s at %v overlaps %s at %v", name, a, other, b)
				}
			}
		}
		for i := range w.Edges {
			checkDrawn(t, w, g, i)
		}
	})
}

// checkDrawn looks for a way from each source of edge i to each of its targets, and for lines
// that end at the boxes they belong to.
func checkDrawn(t *rapid.T, w *protocol.Workflow, g *layout.Graph, i int) {
	e := &w.Edges[i]
	if _, known := w.RoleNamed(e.From[0]); len(e.From) == 1 && !known && e.From[0] != "START" {
		return
	}
	for _, target := range e.To {
		if target == "nobody" {
			continue
		}
		found := false
		for _, a := range g.Arcs {
			found = found || a.Edge == i && g.Nodes[a.To].Name == target && a.Kind != layout.Limit
		}
		if !found {
			t.Errorf("edge %d to %s is not drawn", i, target)
		}
	}
	for _, a := range g.Arcs {
		if a.Edge != i {
			continue
		}
		for k, end := range []int{a.From, a.To} {
			n, at := g.Nodes[end], a.Points[k*(len(a.Points)-1)]
			if at.X < n.X || at.X > n.X+n.W || at.Y < n.Y || at.Y > n.Y+n.H {
				t.Errorf("an end of edge %d is at %v, its node %q at %d,%d (%d × %d)", i, at, n.Name, n.X, n.Y, n.W, n.H)
			}
		}
	}
}

func TestSameBytesEveryTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomWorkflow(t)
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			g := layout.Of(w)
			for _, err := range []error{g.SVG(b, half()), g.Mermaid(b), g.ASCII(b, 72)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("two drawings of one workflow differ")
		}
	})
}

func TestHostileNamesStayText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomWorkflow(t)
		if rapid.Bool().Draw(t, "hostile") {
			w = hostile
		}
		var svg, mermaid bytes.Buffer
		g := layout.Of(w)
		if err := errors.Join(g.SVG(&svg, half()), g.Mermaid(&mermaid)); err != nil {
			t.Fatal(err)
		}
		allowed := map[string]bool{"svg": true, "title": true, "desc": true, "style": true, "rect": true, "g": true, "path": true, "circle": true, "text": true}
		for d := xml.NewDecoder(&svg); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("the SVG is not XML: %v", err)
			}
			start, ok := token.(xml.StartElement)
			if ok && !allowed[start.Name.Local] {
				t.Errorf("element <%s> comes from a name", start.Name.Local)
			}
			for _, a := range start.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") {
					t.Errorf("attribute %s comes from a name", a.Name.Local)
				}
			}
		}
		for _, line := range strings.Split(strings.ReplaceAll(mermaid.String(), "<br/>", ""), "\n") {
			if strings.Contains(line, "<") || strings.Count(line, `"`)%2 != 0 || strings.Count(line, `"`) > 2 {
				t.Errorf("Mermaid line is not escaped: %s", line)
			}
		}
	})
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, width := randomWorkflow(t), rapid.IntRange(1, 120).Draw(t, "width")
		var b bytes.Buffer
		if err := layout.Of(w).ASCII(&b, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := displaywidth.String(line); n > width {
				t.Errorf("%d columns in a terminal of %d: %q", n, width, line)
			}
			for _, r := range line {
				if r < ' ' || r == 0x7f || r == 0x9b || r == 0x202e {
					t.Errorf("control character %U in %q", r, line)
				}
			}
		}
	})
}

// brokenPipe accepts nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestErrorsOfTheWriterComeBack(t *testing.T) {
	g := layout.Of(fixBug)
	for name, err := range map[string]error{
		"SVG": g.SVG(brokenPipe{}, layout.Overlay{}), "Mermaid": g.Mermaid(brokenPipe{}), "ASCII": g.ASCII(brokenPipe{}, 80),
	} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnEmptyWorkflowHasAPicture(t *testing.T) {
	var b bytes.Buffer
	g := layout.Of(&protocol.Workflow{Name: "nothing"})
	if err := errors.Join(g.SVG(&b, layout.Overlay{}), g.Mermaid(&b), g.ASCII(&b, 10)); err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes) != 2 || len(g.Arcs) != 0 {
		t.Errorf("nodes %v, arcs %v; want START and END alone", g.Nodes, g.Arcs)
	}
}

func BenchmarkOf(b *testing.B) {
	for _, roles := range []int{10, 100, 1000} {
		w := &protocol.Workflow{Edges: []protocol.Edge{edge("START", "r0")}}
		for i := range roles {
			w.Roles = append(w.Roles, role(fmt.Sprintf("r%d", i), protocol.ActPrompt))
			to := fmt.Sprintf("r%d", i+1)
			if i+1 == roles {
				to = "END"
			}
			w.Edges = append(w.Edges, edge(fmt.Sprintf("r%d", i), fmt.Sprintf("r%d", i/2), when("output.again"), limit(2, "FAIL")), edge(fmt.Sprintf("r%d", i), to))
		}
		b.Run(fmt.Sprintf("roles=%d", roles), func(b *testing.B) {
			for b.Loop() {
				layout.Of(w)
			}
		})
	}
}
