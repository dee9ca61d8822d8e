package lang_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/yaml"
	"wf/protocol"
)

// goodFiles are the valid workflows of testdata, by name; what they read is beside them.
func goodFiles(t testing.TB) map[string]map[string][]byte {
	t.Helper()
	out := map[string]map[string][]byte{}
	src, err := os.ReadFile("testdata/fix-bug.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out["fix-bug"] = map[string][]byte{"good.yaml": src}
	out["values"] = map[string][]byte{"good.yaml": []byte(everything)}
	files, _ := filepath.Glob("testdata/lint/*.txtar")
	for _, f := range files {
		ar, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		parts := map[string][]byte{}
		for _, p := range ar.Files {
			parts[p.Name] = p.Data
		}
		out[strings.TrimSuffix(filepath.Base(f), ".txtar")] = parts
	}
	return out
}

const everything = `
wf: 1
name: everything
description: All keys at once.
inputs: {n: integer, files: {type: array, default: [a, b]}, mode: {enum: [fast, slow], default: fast, description: How.}}
secrets: [B_KEY, A_KEY]
mcp:
  web: {url: "https://example.com/mcp", headers_env: {Authorization: B_KEY, X-Key: A_KEY}}
  files: {command: [mcp-files, --root, .], env: {TOKEN: "${{ secrets.A_KEY }}", LEVEL: 2}}
limits: {steps: 9, duration: 1h, cost_usd: 0.25, tokens: 1000}
defaults: {model: a/b, timeout: 90s, retry: {attempts: 3, delay: 1s, factor: 1.50, max_delay: 1m, on: [timeout, exit_75]}, env: {X: "1", Y: "2"}, params: {temperature: 0.2, top_p: 1}}
roles:
  agent:
    description: Not part of the definition.
    prompt: Speak ${{ inputs.mode }}.
    tools: [shell: ask, read_file, "mcp:files/*", write_file: auto, "mcp:web/get": ask]
    context: fresh
    dynamic: [date]
    compaction: {watermark: 1000, keep: 3, model: c/d}
    max_turns: 7
    sandbox: off
    network: allow
    params: {temperature: 0.7}
  cmd: {run: 'echo "$X"', env: {X: "${{ inputs.n }}", K: "${{ secrets.A_KEY }}"}, dir: sub, once: true, retry: 1}
  who: {ask: "Which, ${{ inputs.mode }}?", choices: [yes, {label: No, value: no, primary: true}], form: {type: object, properties: {why: {type: string}}}}
  nap: {wait: 10s}
  day: {wait: {until: "2026-01-31T09:00:00Z"}}
  sig: {wait: {signal: go}}
  val: {set: {f: "${{ item }}", i: "${{ index }}", c: 3, l: [1, {x: "${{ inputs.n }}"}]}, max_visits: 4}
  end: {set: {all: "${{ outputs.nap }}"}, route: all}
edges:
  - {from: START, to: agent}
  - {from: agent, to: cmd, prompt: "${{ inputs.n }} ${{ inputs['mode'] }} ${{ output.text }} ${{ steps.agent.visit }}"}
  - {from: cmd, to: who, on: failure, prompt: "It failed: ${{ output.text }}"}
  - {from: cmd, to: val, for_each: inputs.files, max_parallel: 2, prompt: "${{ item }}"}
  - {from: who, to: END, when: output.choice == "no"}
  - {from: who, to: agent, limit: 2, on_limit: FAIL}
  - {from: val, to: [nap, day, sig]}
  - {from: [nap, day, sig], to: end}
  - {from: end, to: END, prompt: "${{ output.all }}"}
outputs: {a: "${{ steps.agent.text }}", b: [1, "${{ inputs.n }}"]}
`

// TestFormattingNeverChangesTheCID writes good files anew, with the keys in another order,
// other quotes, other nesting and comments, and compares the CIDs.
func TestFormattingNeverChangesTheCID(t *testing.T) {
	files := goodFiles(t)
	names := slices.Sorted(maps.Keys(files))
	rapid.Check(t, func(rt *rapid.T) {
		parts := files[rapid.SampledFrom(names).Draw(rt, "file")]
		root, _ := yaml.Parse(parts["good.yaml"], yaml.Limits{})
		w := &writer{t: rt}
		w.block(root, 0, "")
		src := w.b.String()
		if got, want := cidOf(t, []byte(src), parts), cidOf(t, parts["good.yaml"], parts); got != want {
			rt.Fatalf("CID %s became %s by\n%s", want, got, src)
		}
	})
}

func TestLineEndsAndAByteOrderMarkNeverChangeTheCID(t *testing.T) {
	want := cidOf(t, []byte(everything), nil)
	for name, src := range map[string]string{
		"CRLF":           strings.ReplaceAll(everything, "\n", "\r\n"),
		"BOM":            "\ufeff" + everything,
		"no line end":    strings.TrimRight(everything, "\n"),
		"document marks": "---" + everything + "...\n",
	} {
		if got := cidOf(t, []byte(src), nil); got != want {
			t.Errorf("%s: %s became %s", name, want, got)
		}
	}
}

func cidOf(t testing.TB, src []byte, parts map[string][]byte) string {
	p, ds := lang.Load(src, lang.Options{File: "good.yaml", Read: reader(parts)})
	if p == nil {
		var b strings.Builder
		lang.Render(&b, src, ds, false)
		t.Fatalf("%s\n%s", b.String(), src)
	}
	blk, err := p.Block()
	if err != nil {
		t.Fatal(err)
	}
	return blk.Link.String()
}

// writer writes a node as YAML in one of many ways.
type writer struct {
	t *rapid.T
	b strings.Builder
}

func (w *writer) coin(name string) bool { return rapid.Bool().Draw(w.t, name) }

func (w *writer) comment() {
	if w.coin("comment") {
		w.b.WriteString(" # ${{ not.read }} {")
	}
	w.b.WriteByte('\n')
}

// block writes the entries of a mapping or list, each on lines of its own.
func (w *writer) block(n *yaml.Node, indent int, path string) {
	pad := strings.Repeat(" ", indent)
	entry := func(head string, v *yaml.Node, path string) {
		w.b.WriteString(pad + head)
		if v.Kind != yaml.Scalar && len(v.Pairs)+len(v.Items) > 0 && w.coin("block") {
			w.comment()
			w.block(v, indent+2, path)
			return
		}
		w.b.WriteByte(' ')
		w.flow(v, path)
		w.comment()
	}
	for _, p := range w.order(n, path) {
		entry(w.scalar(p.Key)+":", p.Value, path+"."+p.Key.Value)
	}
	for _, it := range n.Items {
		entry("-", it, path+"[]")
	}
}

// order shuffles keys. The order of roles says which comes first where edges do not.
func (w *writer) order(n *yaml.Node, path string) []yaml.Pair {
	if path == ".roles" || len(n.Pairs) == 0 {
		return n.Pairs
	}
	return rapid.Permutation(n.Pairs).Draw(w.t, "order")
}

func (w *writer) flow(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.Scalar:
		w.b.WriteString(w.scalar(n))
	case yaml.Sequence:
		w.b.WriteByte('[')
		for i, it := range n.Items {
			if i > 0 {
				w.b.WriteString(", ")
			}
			w.flow(it, path+"[]")
		}
		w.b.WriteByte(']')
	default:
		w.b.WriteByte('{')
		for i, p := range w.order(n, path) {
			if i > 0 {
				w.b.WriteString(",  ")
			}
			w.b.WriteString(w.scalar(p.Key) + ": ")
			w.flow(p.Value, path+"."+p.Key.Value)
		}
		w.b.WriteByte('}')
	}
}

func (w *writer) scalar(n *yaml.Node) string {
	switch {
	case n.Type != yaml.String:
		return n.Value
	case !strings.Contains(n.Value, "\n") && w.coin("single"):
		return "'" + strings.ReplaceAll(n.Value, "'", "''") + "'"
	}
	return strconv.Quote(n.Value)
}

func TestSugarAndItsLongFormAreOneDefinition(t *testing.T) {
	for _, c := range []struct{ name, short, long string }{
		{"no edges", "roles: {b: {set: {x: 1}}, a: {set: {y: 2}}}",
			"roles: {a: {set: {y: 2}}, b: {set: {x: 1}}}\nedges: [{from: START, to: b}, {from: b, to: a}, {from: a, to: END}]"},
		{"no edge from START", "roles: {b: {set: {x: 1}}, a: {set: {y: 2}}}\nedges: [{from: b, to: a}, {from: a, to: END}]",
			"roles: {b: {set: {x: 1}}, a: {set: {y: 2}}}\nedges: [{from: [START], to: [b]}, {from: b, to: [a]}, {from: [a], to: END}]"},
		{"retry", "roles: {a: {run: ls, retry: 3}}", "roles: {a: {run: ls, retry: {attempts: 3, on: any}}}"},
		{"once is no retry", "roles: {a: {run: ls}}", "roles: {a: {run: ls, retry: 1, continue_on_error: false, route: first}}"},
		{"defaults", "defaults: {timeout: 1m, model: x/y, env: {A: 1, B: 2}}\nroles: {a: {run: ls, env: {A: 3}}, b: {prompt: Go.}, c: {ask: Why?}}",
			"roles: {a: {run: ls, timeout: 60s, env: {A: 3, B: 2}}, b: {prompt: Go., timeout: 60000ms, model: [x/y], context: conversation, env: {A: 1, B: 2}}, c: {ask: Why?}}"},
		{"choices", "roles: {a: {ask: Go?, choices: [yes, no]}}", "roles: {a: {ask: Go?, choices: [{label: yes}, {value: no, label: no, primary: false}]}}"},
		{"wait", "roles: {a: {wait: 90s}}", "roles: {a: {wait: {for: 90s}}}"},
		{"inputs", "inputs: {n: integer}\nroles: {a: {set: {x: 1}}}", "inputs: {n: {type: integer, required: false}}\nroles: {a: {set: {x: 1}}}"},
		{"block and flow text", "roles:\n  a:\n    run: |\n      ls\n", "roles: {a: {run: ls}}"},
		{"braces in when", "roles: {a: {set: {x: 1}}}\nedges: [{from: a, to: END, when: output.x == 1}, {from: a, to: FAIL}]",
			"roles: {a: {set: {x: 1}}}\nedges: [{from: a, to: END, when: '${{ output.x == 1 }}'}, {from: a, to: FAIL}]"},
		{"anchors", "roles: {a: {run: ls, timeout: 1m}, b: {run: ls, timeout: 1m}}",
			"x-base: &base {run: ls, timeout: 3m}\nroles: {a: &a {<<: *base, timeout: 1m}, b: *a}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			short, long := load(t, "wf: 1\nname: t\n"+c.short), load(t, "wf: 1\nname: t\n"+c.long)
			if diff := cmp.Diff(short.Workflow, long.Workflow, cmp.Comparer(sameLink)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func sameLink(a, b protocol.Link) bool { return a == b }

// TestOnIsAStringNotABoolean keeps the on of failure edges out of the hands of YAML 1.1.
func TestOnIsAStringNotABoolean(t *testing.T) {
	p := load(t, "wf: 1\nname: t\nroles: {a: {run: ls}, b: {ask: What now?}}\nedges: [{from: a, to: END}, {from: a, to: b, on: failure}, {from: b, to: END}]")
	if got := []bool{p.Workflow.Edges[1].OnFailure, p.Workflow.Edges[2].OnFailure}; !slices.Equal(got, []bool{false, true}) {
		t.Error(got)
	}
}

func TestTheCanonicalDefinitionHoldsWhatIsMeant(t *testing.T) {
	w := load(t, everything).Workflow
	agent, _ := w.RoleNamed("agent")
	cmd, _ := w.RoleNamed("cmd")
	who, _ := w.RoleNamed("who")
	nap, _ := w.RoleNamed("nap")
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"limits", w.Limits, protocol.Limits{Steps: 9, Duration: 3_600_000_000, Cost: 250_000, Tokens: 1000}},
		{"secrets", w.Secrets, []string{"A_KEY", "B_KEY"}},
		{"default", w.Inputs["files"].Default, `["a","b"]`},
		{"servers", w.MCP, []protocol.MCPServer{
			{Name: "files", Command: []string{"mcp-files", "--root", "."}, Env: []protocol.MCPValue{{Name: "LEVEL", Value: "2"}, {Name: "TOKEN", Secret: "A_KEY"}}},
			{Name: "web", URL: "https://example.com/mcp", Headers: []protocol.MCPValue{{Name: "Authorization", Secret: "B_KEY"}, {Name: "X-Key", Secret: "A_KEY"}}},
		}},
		{"tools", agent.Tools, []string{"mcp:files/*", "mcp:web/get", "read_file", "shell", "write_file"}},
		{"approvals", agent.Approvals, []protocol.NamedTemplate{{Name: "mcp:web/get", Value: "ask"}, {Name: "shell", Value: "ask"}, {Name: "write_file", Value: "auto"}}},
		{"params are decimals", agent.Params, `{"temperature":"0.7"}`},
		{"retry", *agent.Retry, protocol.Retry{Attempts: 3, Delay: 1_000_000, Factor: "1.5", MaxDelay: 60_000_000, On: []string{"exit_75", "timeout"}}},
		{"retry: 1 is none", cmd.Retry, (*protocol.Retry)(nil)},
		{"env", cmd.Env, []protocol.NamedTemplate{{Name: "K", Value: "${{ secrets.A_KEY }}"}, {Name: "X", Value: "${{ inputs.n }}"}, {Name: "Y", Value: "2"}}},
		{"no timeout of a question by default", who.Timeout, int64(0)},
		{"no timeout of a timer by default", nap.Timeout, int64(0)},
		{"choices", who.Choices, []protocol.Choice{{Label: "yes", Value: "yes"}, {Label: "No", Value: "no", Primary: true}}},
		{"mentions", w.Edges[1].Mentions, []string{"inputs.mode", "inputs.n", "output", "steps.agent"}},
		{"mentions of an item", w.Edges[3].Mentions, []string{"item"}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.what, c.got, c.want)
		}
	}
}

// TestAStoredDefinitionBehavesAsTheFile compiles what the blocks of good files hold and
// compares every answer of the two programs over random scopes.
func TestAStoredDefinitionBehavesAsTheFile(t *testing.T) {
	type twins struct{ loaded, stored *lang.Program }
	all := map[string]twins{}
	for name, parts := range goodFiles(t) {
		loaded, _ := lang.Load(parts["good.yaml"], lang.Options{File: "good.yaml", Read: reader(parts)})
		all[name] = twins{loaded, throughBlocks(t, loaded)}
	}
	names := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(rt *rapid.T) {
		p := all[rapid.SampledFrom(names).Draw(rt, "file")]
		s := scope(rt, p.loaded.Workflow)
		if diff := cmp.Diff(answers(p.loaded, s), answers(p.stored, s)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// throughBlocks encodes a program with its sub-workflows and compiles it from the blocks.
func throughBlocks(t *testing.T, p *lang.Program) *lang.Program {
	blocks, err := p.AllBlocks()
	if err != nil {
		t.Fatal(err)
	}
	byLink := map[protocol.Link][]byte{}
	for _, b := range blocks {
		byLink[b.Link] = b.Data
	}
	read := func(l protocol.Link) (*protocol.Workflow, error) {
		w := &protocol.Workflow{}
		return w, cas.Decode(byLink[l], w)
	}
	top := blocks[len(blocks)-1].Link
	w, err := read(top)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := lang.Compile(w, read)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := stored.Block(); err != nil || again.Link != top {
		t.Fatalf("%s became %s, %v", top, again.Link, err)
	}
	if len(stored.Children) != len(p.Children) {
		t.Fatalf("%s: children were lost", w.Name)
	}
	return stored
}

func answers(p *lang.Program, s lang.Scope) []string {
	var out []string
	say := func(v any, err error) { out = append(out, fmt.Sprintf("%v %v", v, err)) }
	for i := range p.Workflow.Edges {
		ok, err := p.When(i, s)
		say(ok, err)
		text, err := p.EdgePrompt(i, s)
		say(text, err)
		list, err := p.ForEach(i, s)
		say(list, err)
	}
	for i := range p.Workflow.Roles {
		r, err := p.Templates(&p.Workflow.Roles[i], s)
		say(fmt.Sprintf("%+v", r), err)
	}
	b, err := p.Outputs(s)
	say(string(b), err)
	b, err = p.Inputs(s.Inputs)
	say(string(b), err)
	return out
}

// scope draws values for everything that the expressions of w may name.
func scope(t *rapid.T, w *protocol.Workflow) lang.Scope {
	value := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.IntRange(-3, 9), toAny), rapid.Map(rapid.Bool(), toAny),
		rapid.Map(rapid.SampledFrom([]string{"", "done", "x", "語"}), toAny), rapid.Map(rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3), func(v []int) any {
			out := []any{}
			for _, i := range v {
				out = append(out, i)
			}
			return out
		}))
	object := func(label string) map[string]any {
		return rapid.MapOfN(rapid.SampledFrom([]string{"text", "status", "x", "ok", "n", "choice", "exit_code", "items"}), value, 0, 8).Draw(t, label)
	}
	s := lang.Scope{Inputs: map[string]any{}, Output: object("output"), Outputs: map[string]any{}, Steps: map[string]*lang.Step{},
		Item: value.Draw(t, "item"), Index: 2, EdgeVisit: rapid.IntRange(1, 4).Draw(t, "edge visit")}
	for name := range w.Inputs {
		s.Inputs[name] = value.Draw(t, "input")
	}
	for i := range w.Roles {
		if rapid.Bool().Draw(t, "ran") {
			name := w.Roles[i].Name
			s.Outputs[name] = object(name)
			s.Steps[name] = &lang.Step{Output: object(name), Text: "text", Status: "ok", Visit: i}
		}
	}
	return s
}

func toAny[T any](v T) any { return v }
