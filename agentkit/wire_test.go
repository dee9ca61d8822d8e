package agentkit

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
	"wf/agentkit/prompt/prompttest"
	"wf/protocol"
)

// converse performs n visits of a coder on a wire, each after a test that failed, and gives
// the usage of the first call of each visit.
func converse(t *testing.T, base string, n int, params string) []protocol.Usage {
	t.Helper()
	agent := Agent{Models: func(name, _ string) (llms.Model, error) {
		return openai.New(name, "m", openai.Config{BaseURL: base})
	}}
	var first []protocol.Usage
	h := prompttest.PingPong(n)
	texts := map[string]string{}
	for k := 1; k <= n; k++ {
		visit := prompttest.PingPong(k)
		for i := range visit.Past {
			if p := &visit.Past[i]; p.Role == "coder" {
				p.Text = texts[fmt.Sprint(p.Visit)]
			}
		}
		visit.Tools = h.Tools
		turn := protocol.Turn{
			Run: "run", Step: protocol.StepID{Role: "coder", N: k, Index: -1}, Visit: k, Attempt: 1,
			Role:   protocol.Role{Name: "coder", Action: protocol.ActPrompt, Tools: []string{"list_files"}, Params: params},
			Models: []string{"openai/m"}, Workspace: t.TempDir(), History: visit,
		}
		p, err := agent.Prepare(t.Context(), turn)
		if err != nil {
			t.Fatal(err)
		}
		h.Tools, turn.History.Tools = p.Tools, p.Tools
		j := &journal{}
		c, err := agent.Perform(t.Context(), turn, j.emit)
		if err != nil {
			t.Fatalf("visit %d: %v", k, err)
		}
		texts[fmt.Sprint(k)] = *c.Text
		first = append(first, find[protocol.Usage](j)[0])
	}
	return first
}

func TestW02PrefixOnTheWire(t *testing.T) {
	var answers []modeltest.Answer
	for k := range 6 {
		answers = append(answers,
			modeltest.Calls(modeltest.Call{ID: "a", Name: "list_files", Args: `{"path":"."}`}, modeltest.Call{ID: "b", Name: "list_files", Args: `{"path": "no <such> 12345678901234567890"}`}),
			modeltest.Text(fmt.Sprintf("Try %d <done> & gone.", k)))
	}
	s := modeltest.Start(t, answers...)
	usage := converse(t, s.URL, 6, "")

	requests := s.Requests()
	for k := 0; k+2 < len(requests); k += 2 {
		p, loop, next := requests[k].Messages(), requests[k+1].Messages(), requests[k+2].Messages()
		if !bytes.HasPrefix(loop, p) {
			t.Errorf("the loop of visit %d changed its first request", k/2+1)
		}
		if !bytes.HasPrefix(next, p) {
			t.Errorf("visit %d does not begin with visit %d", k/2+2, k/2+1)
		}
		if bytes.Contains(next, []byte("list_files\",\"arguments")) {
			t.Errorf("W-04: a tool call of visit %d is in visit %d", k/2+1, k/2+2)
		}
		if got, before := *usage[k/2+1].Cached, *usage[k/2].Input; got < before-1 {
			t.Errorf("visit %d read %d tokens from the cache, visit %d had %d", k/2+2, got, k/2+1, before)
		}
	}
}

func TestLlamaServerReadsWholePrefixesFromItsCache(t *testing.T) {
	base := modeltest.Llama(t)
	usage := converse(t, base, 5, `{"max_tokens":24,"temperature":"0.0"}`)
	for k, u := range usage {
		t.Logf("visit %d: prompt %d, cached %d", k+1, *u.Input, *u.Cached)
		if k > 0 && *u.Cached < *usage[k-1].Input-1 {
			t.Errorf("visit %d read only %d tokens from the cache, visit %d had %d", k+1, *u.Cached, k, *usage[k-1].Input)
		}
	}
}
