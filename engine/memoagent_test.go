package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit"
	"wf/agentkit/model"
	"wf/agentkit/prompt"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// agents is a bench whose agents are reused; their model is the script replies.yaml.
type agents struct {
	*memos
	agent   agentkit.Agent
	calls   atomic.Int64 // of models
	scripts string       // the directory that scripts are in
	asking  func()       // called before each call; may be nil
}

// counted is a model whose calls are counted.
type counted struct {
	llms.Model
	of *agents
}

func (c counted) GenerateContent(ctx context.Context, m []llms.MessageContent, o ...llms.CallOption) (*llms.ContentResponse, error) {
	if c.of.calls.Add(1); c.of.asking != nil {
		c.of.asking()
	}
	return c.Model.GenerateContent(ctx, m, o...)
}

func (c counted) Sources(r model.Request) []model.Source { return c.Model.(model.Sourced).Sources(r) }

func newAgents(t testing.TB, script string) *agents {
	a := &agents{memos: newMemos(t), scripts: t.TempDir()}
	a.script("replies.yaml", script)
	a.agent.Models = func(name, _ string) (llms.Model, error) {
		m, err := agentkit.Standard().Open(name, a.scripts)
		if err != nil {
			return nil, err
		}
		return counted{m, a}, nil
	}
	a.set()
	return a
}

// script writes a script.
func (a *agents) script(name, text string) {
	if err := os.WriteFile(filepath.Join(a.scripts, name), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agents) set() {
	a.memos.set()
	a.e.Performers[protocol.ActPrompt] = &a.agent
}

// asked is how many calls of models were made since it was asked last.
func (a *agents) asked() int { return int(a.calls.Swap(0)) }

// rendered is the request that a visit has come to, as wf replay --check renders it.
func rendered(t protocol.Turn) ([]byte, protocol.Link, error) {
	m, err := prompt.Rebuild(t)
	if err != nil {
		return nil, protocol.Link{}, err
	}
	b := prompt.Bytes(t.History.Tools, m)
	return b, protocol.RawLink(b), nil
}

func (a *agents) proved(id protocol.RunID) *engine.CheckReport {
	a.t.Helper()
	rep, err := a.e.Check(context.Background(), id, rendered)
	if err != nil || !rep.OK() {
		a.t.Fatalf("%v %+v", err, rep)
	}
	return rep
}

// records are the CIDs of all steps, and of the result.
func records(v *api.Run) (out []string) {
	for _, s := range v.Steps {
		cid := "none"
		if s.CID != nil {
			cid = *s.CID
		}
		out = append(out, s.ID+" "+cid)
	}
	if v.Result != nil {
		out = append(out, *v.Result)
	}
	return out
}

// agentFlow is one agent, with lines of YAML of its role.
func agentFlow(prompt string, lines ...string) string {
	return "wf: 1\nname: one\nroles:\n  coder:\n    prompt: " + prompt + "\n    model: script/replies.yaml\n    timeout: 1m\n    cache: true\n    " +
		strings.Join(lines, "\n    ") + "\nedges: [{from: START, to: coder, prompt: Go}, {from: coder, to: END}]\n"
}

const answers = "coder#1: [{text: done, usage: {input: 11, output: 2}}]\n"

func TestM01AnAnswerOfAnAgentIsReused(t *testing.T) {
	a := newAgents(t, answers)
	first := a.drive(a.start(agentFlow("You code."), ""))
	want(t, "first", how(first), "none")
	want(t, "calls", a.asked(), 1)
	a.write("anything", "which an agent without tools does not see")
	again := a.drive(a.start(agentFlow("You code."), ""))
	want(t, "again", how(again), "reused")
	want(t, "calls", a.asked(), 0)
	want(t, "records", fmt.Sprint(records(again)), fmt.Sprint(records(first)))
	want(t, "text", again.Steps[0].Text, "done")
	want(t, "from", again.Steps[0].Reuse.From, string(first.ID)+":coder#1")
	want(t, "calls of the step", again.Steps[0].Usage.Calls, 0)
	want(t, "proved", a.proved(again.ID).Results, engine.Tally{Checked: 1, Equal: 1})
	want(t, "events", strings.Join(eventsOf(a, again.ID), " "), "run_started step_started reused step_completed done")
}

func eventsOf(a *agents, id protocol.RunID) (out []string) {
	for _, e := range a.entries(id) {
		out = append(out, string(e.Type))
	}
	return out
}

const writing = `coder#1:
  - {tool: read_file, args: {path: a.txt}}
  - {tool: write_file, args: {path: out/b.txt, content: new}}
  - {tool: edit_file, args: {path: a.txt, old: one, new: two}}
  - {text: changed}
`

const fileTools = "tools: [edit_file, list_files, read_file, search, write_file]"

func TestM01FilesOfAnAgentAreReused(t *testing.T) {
	a := newAgents(t, writing)
	yaml := agentFlow("You code.", fileTools)
	a.write("a.txt", "one")
	first := a.drive(a.start(yaml, ""))
	want(t, "first", how(first), "none")
	want(t, "again, from another state", a.did(yaml), "differs file a.txt")
	a.write("a.txt", "one")
	if err := os.RemoveAll(filepath.Join(a.dir, "out")); err != nil {
		t.Fatal(err)
	}
	a.asked()
	again := a.drive(a.start(yaml, ""))
	want(t, "again", how(again), "reused")
	want(t, "calls", a.asked(), 0)
	want(t, "changed", a.read("a.txt"), "two")
	want(t, "made", a.read("out/b.txt"), "new")
	want(t, "records", fmt.Sprint(records(again)), fmt.Sprint(records(first)))
	want(t, "files", again.Steps[0].Reuse.Files, 2)
}

// Each thing that the answer of an agent follows from makes another key, and is named.
func TestM02TheFirstThingThatDiffersOfAnAgentIsNamed(t *testing.T) {
	base := agentFlow("You code.", fileTools)
	for _, c := range []struct {
		name, want string
		change     func(a *agents) string
		setup      func(a *agents)
	}{
		{"nothing", "reused", func(a *agents) string { return base }, nil},
		{"what no answer follows from", "reused", func(a *agents) string {
			return strings.Replace(base, "cache: true", "cache: {for: 7d}", 1)
		}, nil},
		{"the system prompt", "differs role", func(a *agents) string { return strings.Replace(base, "You code.", "You test.", 1) }, nil},
		{"the edge prompt", "differs message 2 (user)", func(a *agents) string { return strings.Replace(base, "prompt: Go", "prompt: Stop", 1) }, nil},
		{"the script", "differs script", func(a *agents) string { a.script("replies.yaml", "# hostile\n"+writing); return base }, nil},
		{"the model", "differs role", func(a *agents) string {
			a.script("others.yaml", writing)
			return strings.Replace(base, "script/replies", "script/others", 1)
		}, nil},
		{"params", "differs role", func(a *agents) string {
			return strings.Replace(base, "cache: true", "cache: true\n    params: {temperature: 1}", 1)
		}, nil},
		{"the tools", "differs role", func(a *agents) string { return strings.Replace(base, "search, ", "", 1) }, nil},
		{"a file", "differs file a.txt", func(a *agents) string { a.write("a.txt", "one, too"); return base }, nil},
		{"an ignored file", "differs file node_modules/x", func(a *agents) string {
			a.write("node_modules/x", "")
			return base
		}, nil},
		{"a directory without files", "differs files", func(a *agents) string { os.Mkdir(filepath.Join(a.dir, "empty"), 0o777); return base }, nil},
		{"a repository", "differs names of git and wf", func(a *agents) string { os.Mkdir(filepath.Join(a.dir, ".git"), 0o777); return base }, nil},
		{"a nested repository", "differs names of git and wf", func(a *agents) string {
			os.Mkdir(filepath.Join(a.dir, "sub/.git"), 0o777)
			return base
		}, nil},
		{"what git ignores", "differs .git/info/exclude", func(a *agents) string {
			a.write(".git/info/exclude", "*.log")
			return base
		}, func(a *agents) { a.write(".git/info/attributes", "") }},
		{"a pipe", "cannot", func(a *agents) string { syscall.Mkfifo(filepath.Join(a.dir, "pipe"), 0o600); return base }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgents(t, writing)
			reset := func() {
				a.write("a.txt", "one")
				a.write("sub/x", "")
				os.RemoveAll(filepath.Join(a.dir, "out"))
			}
			reset()
			if c.setup != nil {
				c.setup(a)
			}
			want(t, "first", a.did(base), "none")
			reset()
			want(t, "then", a.did(c.change(a)), c.want)
		})
	}
}

// A visit that goes on with a conversation behind a reused answer is sent, byte for byte, what it would have been.
func TestM01AReenteredAgentGoesOnBehindAReusedAnswer(t *testing.T) {
	script := "coder#1: [{text: first answer, usage: {input: 100, output: 3}}]\ncoder#2: [{tool: read_file, args: {path: a.txt}}, {text: second answer}]\n"
	yaml := `wf: 1
name: loop
inputs: {word: {type: string, default: go}}
roles:
  coder: {prompt: You code., model: script/replies.yaml, timeout: 1m, cache: true}
  note: {set: {x: "${{ steps.coder.visit }}"}}
edges:
  - {from: START, to: coder, prompt: "${{ inputs.word }}"}
  - {from: coder, to: note}
  - {from: note, to: coder, prompt: again, limit: 1, on_limit: END}
`
	plain := newAgents(t, script)
	off := plain.drive(plain.start(yaml, protocol.CacheOff))
	want(t, "performed", how(off), "off; plain; off; plain")

	a := newAgents(t, script)
	first := a.drive(a.start(yaml, ""))
	want(t, "records of the first", fmt.Sprint(records(first)), fmt.Sprint(records(off)))
	dropMemo(a, first.Steps[2].Reuse.Key)
	a.asked()
	half := a.drive(a.start(yaml, ""))
	want(t, "the first visit reused", how(half), "reused; plain; none; plain")
	want(t, "calls", a.asked(), 2)
	want(t, "records behind it", fmt.Sprint(records(half)), fmt.Sprint(records(off)))
	want(t, "digest", promptOf(a, half.ID, "coder#2"), promptOf(plain, off.ID, "coder#2"))
	rep := a.proved(half.ID)
	want(t, "prefixes", rep.Prefixes, engine.Tally{Checked: 1, Equal: 1})
	want(t, "prompts", rep.Prompts, engine.Tally{Checked: 1, Equal: 1})
	want(t, "results", rep.Results, engine.Tally{Checked: 1, Equal: 1})
	again := a.drive(a.start(yaml, ""))
	want(t, "all reused", how(again), "reused; plain; reused; plain")
	want(t, "prefixes", a.proved(again.ID).Results, engine.Tally{Checked: 2, Equal: 2})
	want(t, "records", fmt.Sprint(records(again)), fmt.Sprint(records(off)))

	forked, err := a.e.Fork(t.Context(), again.ID, engine.ForkOptions{At: a.seqOf(again.ID, "coder#2", protocol.EvStepStarted) - 1, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "a fork", records(a.drive(forked))[2], records(off)[2])
}

func promptOf(a *agents, id protocol.RunID, step string) string {
	for _, e := range a.entries(id) {
		if e.Type == protocol.EvPrompt && e.StepName() == step {
			d, err := cas.DecodeData[protocol.PromptSent](&e.Event)
			if err != nil {
				a.t.Fatal(err)
			}
			return d.Digest
		}
	}
	return "none"
}

func dropMemo(a *agents, key string) {
	a.t.Helper()
	if err := a.e.Store.Commit(context.Background(), cas.Batch{Derived: []cas.Derived{cas.DropMemo(key)}}); err != nil {
		a.t.Fatal(err)
	}
}

// What follows from more than the key says is not kept.
func TestM01WhatNoKeyTellsOfAnAgentIsNotKept(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct{ name, script, lines, want string }{
		{"a fallback", "coder#1: [{error: {status: 503, retry_after: 1h}}, {text: b}]", "model: [script/replies.yaml, script/replies.yaml]", "none; not stored: its first model did not answer, script/replies.yaml was asked instead"},
		{"a path of the machine", "coder#1: [{tool: read_file, args: {path: /etc/passwd}}, {text: b}]", fileTools, "none; not stored: a call names a file by its place on this machine: /etc/passwd"},
		{"a file of git", "coder#1: [{tool: read_file, args: {path: .GIT/config}}, {text: b}]", fileTools, "none; not stored: a call names a file of .GIT, which no key can tell"},
		{"a file of git, by a link", "coder#1: [{tool: read_file, args: {path: link/config}}, {text: b}]", fileTools, "none; not stored: a call names a file of .git, which no key can tell"},
		{"a key in a file", "coder#1: [{tool: read_file, args: {path: key}}, {text: b}]", fileTools, "none; not stored: a secret was hidden in what it read or said"},
		{"a model without a file", "coder#1: [{text: b}]", "model: [script/none.yaml, script/replies.yaml]", "cannot"},
		{"a call that fails at first", "coder#1: [{error: {status: 503, retry_after: 1ms}}, {text: " + long + "}]", "", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgents(t, c.script)
			a.write(".git/config", "[core]")
			a.write("key", "AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijABCDEFGHIJ012345")
			if err := os.Symlink(".git", filepath.Join(a.dir, "link")); err != nil {
				t.Fatal(err)
			}
			yaml := agentFlow("You code.", c.lines)
			if strings.HasPrefix(c.lines, "model") {
				yaml = strings.Replace(yaml, "    model: script/replies.yaml\n", "", 1)
			}
			want(t, "first", a.did(yaml), c.want)
			if then := a.did(yaml); (then == "reused") != !strings.Contains(c.want, "not stored") && c.want != "cannot" {
				t.Errorf("then: %s", then)
			}
		})
	}
}

// A chain of twelve commands and agents: with another outcome of the ninth four are performed, with the same one.
func TestM02AMixedChainIsPerformedFromWhereItsOutcomeChanges(t *testing.T) {
	var script, roles, edges strings.Builder
	for i := 1; i <= 12; i++ {
		from := "START"
		if i > 1 {
			from = fmt.Sprint("s", i-1)
		}
		prompt := ""
		if i%3 == 0 && i != 9 { // commands, and each third an agent
			fmt.Fprintf(&script, "s%d#1: [{text: \"fine\"}]\n", i)
			fmt.Fprintf(&roles, "  s%d: {prompt: \"You are %d.\", model: script/replies.yaml, timeout: 1m, cache: true}\n", i, i)
		} else {
			fmt.Fprintf(&roles, "  s%d: {run: \"head -c 3 in%d\", timeout: 1m, cache: {inputs: [in%d]}}\n", i, i, i)
		}
		fmt.Fprintf(&edges, "  - {from: %s, to: s%d%s}\n", from, i, prompt)
	}
	a := newAgents(t, script.String())
	for i := 1; i <= 12; i++ {
		a.write(fmt.Sprint("in", i), "abcdef")
	}
	yaml := "wf: 1\nname: chain\nroles:\n" + roles.String() + "edges:\n" + edges.String() + "  - {from: s12, to: END}\n"
	performed := func() int {
		v := a.drive(a.start(yaml, ""))
		n := len(slices.DeleteFunc(strings.Split(how(v), "; "), func(h string) bool { return h == "reused" }))
		if n < 12 && v.Reuse == nil || v.Reuse != nil && v.Reuse.Performed != n || v.Reuse != nil && v.Reuse.Reused != 12-n {
			t.Errorf("performed %d: %+v", n, v.Reuse)
		}
		return n
	}
	want(t, "first", performed(), 12)
	want(t, "again", performed(), 0)
	a.write("in9", "abcxyz")
	want(t, "the same outcome", performed(), 1)
	a.write("in9", "xyz")
	want(t, "another outcome", performed(), 4)
}
