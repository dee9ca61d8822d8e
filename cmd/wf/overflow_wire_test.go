package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/protocol"
)

// narrowYAML is a conversation of twelve visits, of which its model reads about four.
const narrowYAML = `wf: 1
name: narrow
roles:
  coder: {prompt: You code., timeout: 1m}
  test: {set: {ok: false}}
edges:
  - {from: START, to: coder, prompt: Begin.}
  - {from: coder, to: test}
  - {from: test, to: coder, limit: 11, on_limit: END, prompt: "Round ${{ edge.visit }}."}
`

// A model whose window is smaller than assumed: the run is compacted, also after a process died
// with the refusal, and what the refusal told holds for the rest of the run.
func TestF04AConversationGoesOnPastTheWindow(t *testing.T) {
	t.Parallel()
	const window = 4000
	for _, wire := range wires {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %v", wire.name, kill), func(t *testing.T) {
				t.Parallel()
				var refused atomic.Int32
				killed, asked := make(chan struct{}), make(chan struct{}, 1)
				s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
					held := (len(r.Body) + 3) / 4
					summary := strings.Contains(string(r.Body), "Summarise ")
					switch {
					case held > window:
						refused.Add(1)
						return modeltest.Answer{Status: 400, Body: fmt.Sprintf(`{"error":{"message":"prompt is too long: %d tokens > %d maximum"}}`, held, window)}
					case refused.Load() > 0 && kill && !summary:
						a := modeltest.Text(strings.Repeat("It failed again. ", 200))
						a.Before = func() {
							select {
							case asked <- struct{}{}:
								<-killed
							default: // asked again, after the kill
							}
						}
						return a
					case summary:
						return modeltest.Text("All rounds failed.")
					}
					return modeltest.Text(strings.Repeat("It failed again. ", 200))
				})
				p := newPlace(t, wire.env(s))
				write(t, p.dir, "narrow.yaml", narrowYAML)
				if kill {
					p.killed(asked, "run", "narrow.yaml", "--model", wire.model, "-q")
					close(killed)
					p.wf(0, "resume", "-1", "-q")
				} else {
					p.wf(0, "run", "narrow.yaml", "--model", wire.model, "-q")
				}
				var v api.Run
				p.read(&v, "show", "-1")
				compactions := 0
				for _, st := range v.Steps {
					compactions += len(st.Compactions)
				}
				if v.Status != protocol.Done || compactions < 2 {
					t.Errorf("%s: %d compactions", v.Reason, compactions)
				}
				if n := int(refused.Load()); n == 0 || n >= compactions {
					t.Errorf("%d requests were refused, %d compactions: the window is not kept", n, compactions)
				}
				p.prove()
			})
		}
	}
}

// One message that no compaction makes small enough fails its step with the numbers, once, and a
// fork with a wider model goes on.
func TestF04AMessageThatIsTooLongIsOneClearError(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		if held := (len(r.Body) + 3) / 4; held > 1000 {
			return modeltest.Answer{Status: 400, Body: fmt.Sprintf(`{"error":{"code":400,"type":"exceed_context_size_error","message":"too long","n_prompt_tokens":%d,"n_ctx":1000}}`, held)}
		}
		return modeltest.Text("Fine.")
	})
	p := newPlace(t, wires[0].env(s))
	write(t, p.dir, "long.yaml", `wf: 1
name: long
inputs: {text: {default: ""}}
roles:
  coder: {prompt: You code., timeout: 1m}
edges:
  - {from: START, to: coder, prompt: "${{ inputs.text }}"}
  - {from: coder, to: END}
`)
	p.wf(1, "run", "long.yaml", "--model", wires[0].model, "-q", "-i", "text="+strings.Repeat("word ", 2000))
	var v api.Run
	p.read(&v, "show", "-1")
	if e := v.Steps[0].Error; e == nil || e.Code != "context_full" || !strings.Contains(e.Message, "reads at most 1000 tokens") {
		t.Errorf("got %+v", e)
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}
