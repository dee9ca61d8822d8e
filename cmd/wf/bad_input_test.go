package main

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"wf/agentkit/modeltest"
	"wf/agentkit/tool"
	"wf/api"
)

const patient = `wf: 1
name: patient
roles:
  worker:
    prompt: You work.
    tools: [read_file, {shell: auto}]
    output: {type: object, required: [status], properties: {status: {enum: [done]}}}
    timeout: 1m
edges:
  - {from: START, to: worker, prompt: Begin.}
  - {from: worker, to: END}
`

// wires are the ways by which a scripted server is reached.
var wires = []struct {
	name, model string
	env         func(*modeltest.Server) string
}{
	{"OpenAI", "openai/test", func(s *modeltest.Server) string { return "OPENAI_BASE_URL=" + s.URL }},
	{"Anthropic", "anthropic/test", func(s *modeltest.Server) string { return "ANTHROPIC_BASE_URL=" + s.Root }},
}

// Whatever a model says, the provider refuses no request that follows, and the run comes to its
// end: a tool that is not there, arguments that are no JSON, or none, 50 MB of output, an empty
// answer, a line of a megabyte that is nothing.
func TestAModelThatTalksNonsenseIsTolerated(t *testing.T) {
	t.Parallel()
	call := func(id, name, args string) modeltest.Answer {
		return modeltest.Calls(modeltest.Call{ID: id, Name: name, Args: args})
	}
	long := modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Text: strings.Repeat("nonsense", 1<<17)}, {Finish: "stop"}}}
	for _, wire := range wires {
		t.Run(wire.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Start(t,
				call("a", "no_such_tool", `{}`), call("b", "read_file", `{"path": `), call("c", "read_file", ``), call("d", "read_file", `[1, 2]`),
				call("e", "shell", `{"command":"head -c 52428800 /dev/zero | tr '\\0' x"}`),
				modeltest.Text(""), long, modeltest.Text("---\nstatus: done\n---\nAfter all."))
			p := newPlace(t, wire.env(s))
			write(t, p.dir, "patient.yaml", patient)
			p.wf(0, "run", "patient.yaml", "--model", wire.model, "-q")
			var v api.Run
			p.read(&v, "show", "-1")
			if n := v.Steps[0].ToolCalls; n != 5 {
				t.Errorf("%d tool calls, want 5", n)
			}
			requests := s.Requests()
			if n := len(requests); n != 8 {
				t.Fatalf("%d requests, want 8", n)
			}
			if before, after := len(requests[4].Body), len(requests[5].Body); after-before > 2*tool.StdoutMax {
				t.Errorf("50 MB of output became %d bytes of the next request", after-before)
			}
			p.prove()
		})
	}
}

// A server that cannot be used suspends the run with a status of its own, and nothing is lost.
func TestAModelThatCannotBeReachedSuspendsTheRun(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		t.Run(wire.name, func(t *testing.T) {
			t.Parallel()
			var known atomic.Bool
			s := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer {
				if !known.Load() {
					return modeltest.Answer{Status: 401, Body: `{"error":{"message":"who are you"}}`}
				}
				return modeltest.Text("---\nstatus: done\n---\n")
			})
			p := newPlace(t, wire.env(s))
			write(t, p.dir, "patient.yaml", patient)
			p.wf(4, "run", "patient.yaml", "--model", wire.model, "-q")
			var v api.Run
			if err := json.Unmarshal(p.wf(0, "show", "-1", "-o", "json"), &v); err != nil || !strings.Contains(v.Steps[0].Error.Message, "who are you") {
				t.Errorf("the run does not say why: %+v (%v)", v.Steps, err)
			}

			lost := newPlace(t, "OPENAI_BASE_URL=http://model.invalid/v1", "ANTHROPIC_BASE_URL=http://model.invalid")
			lost.dir, lost.env = p.dir, append(p.env[:len(p.env):len(p.env)], lost.env[len(lost.env)-2:]...)
			lost.wf(4, "resume", "-1", "-q")

			known.Store(true)
			p.wf(0, "resume", "-1", "-q")
			p.prove()
		})
	}
}
