package lang

import (
	"strings"
	"testing"

	"wf/protocol"
)

func TestM01WhatCannotBeReusedIsRefused(t *testing.T) {
	for _, c := range []struct{ name, role, rest, code string }{
		{"true", "run: x, cache: true", "", ""},
		{"false", "run: x, cache: false", "", ""},
		{"nothing is read", "run: x, cache: {inputs: []}", "", ""},
		{"all keys", "run: x, cache: {inputs: [a/**], outputs: [b, \"!b/c\"], env: [CC], toolchain: [go version], scope: workflow, for: 7d}", "", ""},
		{"hours", "run: x, cache: {inputs: [], for: 1h30m}", "", ""},
		{"without inputs", "run: x, cache: {outputs: [b]}", "", "WF002"},
		{"an unknown key", "run: x, cache: {inputs: [], input: [a]}", "", "WF001"},
		{"a glob that leads out", "run: x, cache: {inputs: [../a]}", "", "WF002"},
		{"a glob of outputs that leads out", "run: x, cache: {inputs: [], outputs: [/etc/**]}", "", "WF002"},
		{"no time", "run: x, cache: {inputs: [], for: 7 days}", "", "WF002"},
		{"network", "run: x, network: allow, cache: true", "", "WF039"},
		{"hosts", "run: x, network: [\"a:1\"], cache: {inputs: []}", "", "WF039"},
		{"once", "run: x, once: true, cache: true", "", "WF039"},
		{"no sandbox", "run: x, sandbox: off, cache: {inputs: []}", "", "WF039"},
		{"no sandbox, in the workspace", "run: x, sandbox: off, cache: true", "", ""},
		{"a secret", "run: x, env: {K: \"${{ secrets.KEY }}\"}, cache: {inputs: []}", "", "WF039"},
		{"a secret of the environment", "run: x, cache: {inputs: [], env: [KEY]}", "", "WF039"},
		{"an expression", "run: x, cache: {inputs: [], toolchain: [\"echo ${{ inputs.a }}\"]}", "", "WF039"},
		{"artifacts of others", "run: x, artifacts: {from: [w]}, cache: {inputs: []}", "", "WF039"},
		{"a copy of its own", "run: x, workspace: own, cache: {inputs: []}", "", "WF039"},
		{"an always role", "run: x, cache: true", "always: [r]", "WF039"},
		{"items in one workspace", "run: x, cache: true", "edges: [{from: START, to: w}, {from: w, to: r, for_each: \"[1, 2]\"}, {from: r, to: END}]", "WF039"},
		{"items with files of their own", "run: x, cache: {inputs: [a]}", "edges: [{from: START, to: w}, {from: w, to: r, for_each: \"[1, 2]\"}, {from: r, to: END}]", ""},
		{"an agent", "prompt: x, model: openai/gpt-5, cache: true", "", ""},
		{"an agent, for a time", "prompt: x, cache: {for: 7d, scope: workflow}", "", ""},
		{"an agent with inputs", "prompt: x, cache: {inputs: [a]}", "", "WF002"},
		{"an agent with a toolchain", "prompt: x, cache: {toolchain: [go version], for: 1h}", "", "WF002"},
		{"an agent with tools for files", "prompt: x, tools: [read_file, edit_file, write_file, list_files, search], cache: true", "", ""},
		{"an agent with a tool that is refused", "prompt: x, tools: [{edit_file: deny}], cache: true", "", ""},
		{"an agent with a shell", "prompt: x, tools: [{shell: auto}], cache: true", "", "WF039"},
		{"an agent with a shell that it asks for", "prompt: x, tools: [{shell: ask}], cache: true", "", "WF039"},
		{"an agent with an MCP server", "prompt: x, tools: [\"mcp:s/*\"], cache: true", "mcp: {s: {url: \"http://127.0.0.1:1/\"}}", "WF039"},
		{"an agent that asks a person", "prompt: x, tools: [{edit_file: ask}], cache: true", "", "WF039"},
		{"an agent with a memory", "prompt: x, memory: true, cache: true", "", "WF039"},
		{"an agent with tasks", "prompt: x, context: task, cache: true", "", "WF039"},
		{"an agent with the network", "prompt: x, network: allow, cache: true", "", "WF039"},
		{"an agent with a secret", "prompt: x, env: {K: \"${{ secrets.KEY }}\"}, cache: true", "", "WF039"},
		{"an agent with artifacts of others", "prompt: x, artifacts: {from: [w]}, cache: true", "", "WF039"},
		{"an agent with a copy of its own", "prompt: x, tools: [edit_file], workspace: own, cache: true", "", "WF039"},
		{"an agent that always runs", "prompt: x, cache: true", "always: [r]", "WF039"},
		{"items of an agent that writes", "prompt: x, tools: [edit_file], cache: true", "edges: [{from: START, to: w}, {from: w, to: r, for_each: \"[1, 2]\"}, {from: r, to: END}]", "WF039"},
		{"items of an agent that reads", "prompt: x, tools: [read_file], cache: true", "edges: [{from: START, to: w}, {from: w, to: r, for_each: \"[1, 2]\"}, {from: r, to: END}]", ""},
		{"a question", "ask: x, cache: true", "", "WF002"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := Load([]byte("wf: 1\nname: t\nsecrets: [KEY]\ninputs: {a: string}\nroles: {w: {run: x, artifacts: [a]}, r: {"+c.role+"}}\n"+c.rest+"\n"), Options{})
			var got []string
			for _, d := range ds {
				if d.Severity == SeverityError {
					got = append(got, d.Code)
				}
			}
			if strings.Join(got, " ") != c.code {
				t.Errorf("got %v, want %s: %v", got, c.code, ds)
			}
		})
	}
}

func TestM01HowACacheIsWrittenDown(t *testing.T) {
	read := func(cache string) *protocol.Caching {
		t.Helper()
		p, ds := Load([]byte("wf: 1\nname: t\nroles: {r: {run: x, cache: "+cache+"}}\n"), Options{})
		if p == nil {
			t.Fatal(ds)
		}
		r, _ := p.Workflow.RoleNamed("r")
		return r.Caching
	}
	if c := read("false"); c != nil {
		t.Errorf("%+v", c)
	}
	if c := read("true"); c == nil || !c.Whole {
		t.Errorf("%+v", c)
	}
	c := read("{inputs: [a], env: [B, A, B], scope: store, for: 7d}")
	if c.Whole || c.Scope != "" || c.For != 7*24*3600*1_000_000 || strings.Join(c.Env, " ") != "A B" {
		t.Errorf("%+v", c)
	}
}

// What an agent says of reusing its answers is the same when a definition is written as a file again.
func TestM01ACacheOfAnAgentIsWrittenAsAFile(t *testing.T) {
	for _, cache := range []string{"true", "{for: 7d}", "{scope: workflow}", "{scope: workflow, for: 90m}", "{}"} {
		p, ds := Load([]byte("wf: 1\nname: t\nroles: {r: {prompt: x, model: a/b, cache: "+cache+"}}\n"), Options{})
		if p == nil {
			t.Fatal(cache, ds)
		}
		again, ds := Reload(p.Workflow, nil, Options{})
		if again == nil {
			t.Fatal(cache, ds)
		}
		was, err := p.Block()
		if err != nil {
			t.Fatal(err)
		}
		is, err := again.Block()
		if err != nil {
			t.Fatal(err)
		}
		if was.Link != is.Link || !again.Workflow.Roles[0].Caching.Whole {
			t.Errorf("%s: another definition: %+v", cache, again.Workflow.Roles[0].Caching)
		}
	}
}
