package lang_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/engine/lang"
	"wf/protocol"
)

// between are the changes from one source to another, with both definitions.
func between(t testing.TB, good, bad string) (from, to *lang.Program, changes []lang.Change) {
	t.Helper()
	load := func(src string) *lang.Program {
		p, ds := lang.Load([]byte(src), lang.Options{})
		if p == nil {
			t.Fatalf("%v\n%s", ds, src)
		}
		return p
	}
	from, to = load(good), load(bad)
	changes, err := lang.Differences(from.Workflow, to.Workflow, nil)
	if err != nil {
		t.Fatal(err)
	}
	return from, to, changes
}

// cidWith is the definition with some changes.
func cidWith(t testing.TB, from *lang.Program, some []lang.Change) string {
	t.Helper()
	p, ds := lang.Apply(from.Workflow, some, nil, lang.Options{})
	if p == nil {
		t.Fatalf("it does not lint: %v", ds)
	}
	return cidOfProgram(t, p)
}

func cidOfProgram(t testing.TB, p *lang.Program) string {
	t.Helper()
	b, err := p.Block()
	if err != nil {
		t.Fatal(err)
	}
	return b.Link.String()
}

const beforeEdits = `
wf: 1
name: review
description: Before.
inputs: {topic: string, depth: {type: integer, default: 3}}
secrets: [TOKEN]
limits: {steps: 20, duration: 10m}
roles:
  coder: {prompt: Write about the topic., model: a/b, timeout: 90s, tools: [shell], output: {type: object, properties: {done: {type: boolean}}, required: [done]}}
  test: {run: make test, env: {TOKEN: "${{ secrets.TOKEN }}"}}
  old: {set: {x: 1}}
  gate: {ask: "Ship?", choices: [yes, no], timeout: 1h, on_timeout: no}
edges:
  - {from: START, to: coder}
  - {from: coder, to: test, when: output.done, prompt: Test it.}
  - {from: coder, to: coder, limit: 3, on_limit: FAIL}
  - {from: test, to: old}
  - {from: old, to: gate}
  - {from: gate, to: END}
outputs: {text: "${{ steps.coder.text }}"}
`

const afterEdits = `
wf: 1
name: review
description: After.
inputs: {topic: string, lang: {type: string, default: en}}
secrets: [TOKEN]
limits: {steps: 30, tokens: 5000}
roles:
  coder: {prompt: Write well about the topic., model: a/c, timeout: 2m, tools: [shell: ask, read_file], output: {type: object, properties: {done: {type: boolean}}, required: [done]}, network: [packages, "example.com:443"]}
  test: {set: {ok: true}}
  fresh: {run: make lint}
  gate: {ask: "Ship?", choices: [yes, no], timeout: 2h, on_timeout: no, remind: 30m}
edges:
  - {from: START, to: coder}
  - {from: coder, to: coder, when: not output.done, limit: 4, on_limit: FAIL}
  - {from: coder, to: test, prompt: Test it.}
  - {from: test, to: fresh}
  - {from: fresh, to: gate}
  - {from: gate, to: END}
outputs: {text: "${{ steps.coder.text }}"}
always: []
`

func TestM04EveryDifferenceIsNamed(t *testing.T) {
	from, to, changes := between(t, beforeEdits, strings.Replace(afterEdits, "always: []\n", "", 1))
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	want := []string{
		`description: "Before." → "After."`,
		`inputs.depth: removed "default: 3 type: integer"`,
		`inputs.lang: added "default: \"en\" type: string"`,
		`limits.duration: removed "10m0s"`,
		`limits.steps: "20" → "30"`,
		`limits.tokens: added "5000"`,
		`roles.coder.model: "a/b" → "a/c"`,
		`roles.coder.network: added "packages, example.com:443"`,
		`roles.coder.prompt: "Write about the topic." → "Write well about the topic."`,
		`roles.coder.timeout: "1m30s" → "2m0s"`,
		`roles.coder.tools: "shell" → "[\"read_file\",{\"shell\":\"ask\"}]"`,
		`roles.fresh: added "run: make lint"`,
		`roles.gate.remind: added "30m0s"`,
		`roles.gate.timeout: "1h0m0s" → "2h0m0s"`,
		`roles.old: removed "set: x: 1"`,
		`roles.test.action: "env: TOKEN: ${{ secrets.TOKEN }} run: ma…" → "set: ok: true"`,
		`edge coder → coder: moved`,
		`edge coder → test: "when: output.done" → ""`,
		`edge coder → coder: "limit: 3" → "limit: 4 when: not output.done"`,
		`edge test → old: removed`,
		`edge old → gate: removed`,
		`edge test → fresh: added`,
		`edge fresh → gate: added`,
	}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("have\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if got := cidWith(t, from, changes); got != cidOfProgram(t, to) {
		t.Errorf("with all of them it is %s, not %s", got, cidOfProgram(t, to))
	}
	if got := cidWith(t, from, nil); got != cidOfProgram(t, from) {
		t.Error("with none of them it is another one")
	}
	if back, err := lang.Differences(from.Workflow, from.Workflow, nil); err != nil || len(back) > 0 {
		t.Errorf("a definition differs from itself: %v, %v", back, err)
	}
}

// randomSource is a workflow in which any change of a part still lints: roles of values with edges all around.
func randomSource(t *rapid.T, label string) string {
	n := rapid.IntRange(1, 4).Draw(t, label+" roles")
	var b strings.Builder
	b.WriteString("wf: 1\nname: r\n")
	if rapid.Bool().Draw(t, label+" limits") {
		fmt.Fprintf(&b, "limits: {steps: %d, duration: %ds}\n", rapid.IntRange(1, 3).Draw(t, label+" steps"), rapid.IntRange(1, 3).Draw(t, label+" duration"))
	}
	if k := rapid.IntRange(0, 3).Draw(t, label+" inputs"); k > 0 {
		b.WriteString("inputs:\n")
		for i := range k {
			fmt.Fprintf(&b, "  i%d: {type: integer, default: %d}\n", i, rapid.IntRange(0, 2).Draw(t, label+" default"))
		}
	}
	b.WriteString("roles:\n")
	for i := range n {
		fmt.Fprintf(&b, "  r%d: {set: {x: %d}, max_visits: %d}\n", i, rapid.IntRange(0, 2).Draw(t, label+" x"), rapid.IntRange(50, 52).Draw(t, label+" visits"))
	}
	b.WriteString("edges:\n  - {from: START, to: r0}\n")
	for i := range n {
		order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, label+" order")
		for _, k := range order[:rapid.IntRange(0, 3).Draw(t, label+" edges")] {
			fmt.Fprintf(&b, "  - {from: r%d, to: r%d, when: 'steps.r%d.visit > %d', limit: 2, on_limit: END}\n", i, k%n, i, 3*k+rapid.IntRange(0, 2).Draw(t, label+" when"))
		}
		if i+1 < n {
			fmt.Fprintf(&b, "  - {from: r%d, to: r%d}\n", i, i+1)
		} else {
			fmt.Fprintf(&b, "  - {from: r%d, to: END}\n", i)
		}
	}
	return b.String()
}

// All changes make the other definition, none the same one, in whatever order; whatever lints in between is a definition.
func TestM04ChangesAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		load := func(label string) *lang.Program {
			p, ds := lang.Load([]byte(randomSource(rt, label)), lang.Options{})
			if p == nil {
				rt.Fatal(ds)
			}
			return p
		}
		from, to := load("good"), load("bad")
		changes, err := lang.Differences(from.Workflow, to.Workflow, nil)
		if err != nil {
			rt.Fatal(err)
		}
		keys := map[string]bool{}
		for _, c := range changes {
			if id := c.Key + string(c.Kind); keys[id] {
				rt.Errorf("two changes are called %s", id)
			} else {
				keys[id] = true
			}
			if line := c.String(); strings.ContainsAny(line, "\n\r") || len(line) > 400 {
				rt.Errorf("%q is not one short line", line)
			}
		}
		if got := cidWith(t, from, changes); got != cidOfProgram(t, to) {
			text, _ := lang.Apply(from.Workflow, changes, nil, lang.Options{})
			rt.Fatalf("all of %v made\n%+v of\n%+v and not\n%+v", changes, text.Workflow.Edges, from.Workflow.Edges, to.Workflow.Edges)
		}
		if cidWith(t, from, nil) != cidOfProgram(t, from) {
			rt.Fatal("none of them changed something")
		}
		mixed := rapid.Permutation(changes).Draw(rt, "order")
		some := mixed[:rapid.IntRange(0, len(mixed)).Draw(rt, "some")]
		p, _ := lang.Apply(from.Workflow, some, nil, lang.Options{})
		back := slices.Clone(some)
		slices.Reverse(back)
		q, _ := lang.Apply(from.Workflow, back, nil, lang.Options{})
		if (p == nil) != (q == nil) || p != nil && cidOfProgram(t, p) != cidOfProgram(t, q) {
			rt.Fatal("the order of the changes has an effect")
		}
		if p == nil {
			return
		}
		// what is left leads from there to the other one
		rest, err := lang.Differences(p.Workflow, to.Workflow, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if cidWith(t, p, rest) != cidOfProgram(t, to) {
			rt.Fatal("from a mixture the way goes elsewhere")
		}
	})
}

// A mixture of good files of all kinds never panics, and all changes make the other.
func TestM04AnyTwoDefinitionsMix(t *testing.T) {
	files := goodFiles(t)
	var all []*lang.Program
	for name, parts := range files {
		p, ds := lang.Load(parts["good.yaml"], lang.Options{File: "good.yaml", Read: reader(parts)})
		if p == nil {
			t.Fatal(name, ds)
		}
		all = append(all, p)
	}
	r := rand.New(rand.NewPCG(4, 4))
	for range 150 {
		from, to := all[r.IntN(len(all))], all[r.IntN(len(all))]
		sub := func(l protocol.Link) (*protocol.Workflow, error) {
			if w := subOf(from, l); w != nil {
				return w, nil
			}
			return subOf(to, l), nil
		}
		changes, err := lang.Differences(from.Workflow, to.Workflow, sub)
		if err != nil {
			t.Fatal(err)
		}
		p, ds := lang.Apply(from.Workflow, changes, sub, lang.Options{})
		if p == nil || cidOfProgram(t, p) != cidOfProgram(t, to) {
			t.Fatalf("from %s to %s: %v", from.Workflow.Name, to.Workflow.Name, ds)
		}
		r.Shuffle(len(changes), func(i, k int) { changes[i], changes[k] = changes[k], changes[i] })
		lang.Apply(from.Workflow, changes[:r.IntN(len(changes)+1)], sub, lang.Options{})
	}
}

// A change of a long text is one line that shows where it differs, and is applied whole.
func TestM04LongTextsDifferInOneLine(t *testing.T) {
	long := strings.Repeat("wörter ", 30_000) // 240 KB
	source := func(end string) string {
		return "wf: 1\nname: long\nroles:\n  a:\n    prompt: |\n      " + long + end + "\n    model: a/b\n"
	}
	from, to, changes := between(t, source("good"), source("bad"))
	if len(changes) != 1 {
		t.Fatalf("%d changes", len(changes))
	}
	if got := changes[0].String(); got != `roles.a.prompt: "…r wörter good" → "…r wörter bad"` {
		t.Error(got)
	}
	if cidWith(t, from, changes) != cidOfProgram(t, to) {
		t.Error("it is not applied")
	}
}

// 200 changes of 10,000 edges are found and applied.
func TestM04ManyChanges(t *testing.T) {
	source := func(odd int) string {
		var b strings.Builder
		b.WriteString("wf: 1\nname: many\nroles:\n")
		for i := range 200 {
			fmt.Fprintf(&b, "  r%d: {set: {x: %d}}\n", i, i*odd)
		}
		return b.String()
	}
	from, to, changes := between(t, source(1), source(2))
	if len(changes) != 199 {
		t.Fatalf("%d changes", len(changes))
	}
	if cidWith(t, from, changes) != cidOfProgram(t, to) {
		t.Error("they are not applied")
	}
}

// Changes of a sub-workflow are changes of their own, at any depth.
func TestM04SubWorkflowsAreTakenApart(t *testing.T) {
	files := func(text, order string) map[string][]byte {
		return map[string][]byte{
			"top.yaml":    []byte("wf: 1\nname: top\nroles: {a: {workflow: middle.yaml}, b: {set: {x: 1}}}\n"),
			"middle.yaml": []byte("wf: 1\nname: middle\nroles: {c: {workflow: low.yaml}, d: {set: {y: " + text + "}}}\n"),
			"low.yaml":    []byte("wf: 1\nname: low\ndescription: " + text + "\nroles: {e: {set: {z: 1}}, f: {set: {z: 2}}}\nedges: [" + order + "]\n"),
		}
	}
	load := func(parts map[string][]byte) *lang.Program {
		p, ds := lang.Load(parts["top.yaml"], lang.Options{File: "top.yaml", Read: reader(parts)})
		if p == nil {
			t.Fatal(ds)
		}
		return p
	}
	from := load(files("one", "{from: e, to: f}, {from: f, to: END}"))
	to := load(files("two", "{from: e, to: f, prompt: Go on.}, {from: f, to: END}"))
	sub := func(l protocol.Link) (*protocol.Workflow, error) {
		if w := subOf(from, l); w != nil {
			return w, nil
		}
		return subOf(to, l), nil
	}
	changes, err := lang.Differences(from.Workflow, to.Workflow, sub)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	want := []string{"a/roles.d.set", "a/c/description", "a/c/edge e → f"}
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		t.Errorf("have %q\nwant %q", keys, want)
	}
	all, ds := lang.Apply(from.Workflow, changes, sub, lang.Options{})
	if all == nil || cidOfProgram(t, all) != cidOfProgram(t, to) {
		t.Errorf("all changes make another definition: %v", ds)
	}
	if one, ds := lang.Apply(from.Workflow, changes[:1], sub, lang.Options{}); one == nil || cidOfProgram(t, one) == cidOfProgram(t, from) {
		t.Errorf("one change changes nothing: %v", ds)
	}
	whole, err := lang.Differences(from.Workflow, to.Workflow, nil)
	if err != nil || len(whole) != 1 || whole[0].Key != "roles.a.workflow" {
		t.Errorf("without the definitions: %v, %v", whole, err)
	}
}
