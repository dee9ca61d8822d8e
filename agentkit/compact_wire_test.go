package agentkit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
	"wf/protocol"
)

// wires open a model at a server that caches as the providers do.
var wires = map[string]func(s *modeltest.Server) (llms.Model, error){
	"openai": func(s *modeltest.Server) (llms.Model, error) {
		return openai.New("openai/test", "test", openai.Config{BaseURL: s.URL, Key: "k"})
	},
	"anthropic": func(s *modeltest.Server) (llms.Model, error) {
		return anthropic.New("anthropic/test", "test", anthropic.Config{BaseURL: s.Root, Key: "k"})
	},
}

// overWire is a stage whose role can read, at a server.
func overWire(t *testing.T, n int, s *modeltest.Server, open func(*modeltest.Server) (llms.Model, error)) *stage {
	t.Helper()
	st := working(t, n, "coder#1: [{text: unused}]")
	st.agent.Models = func(string, string) (llms.Model, error) { return open(s) }
	return st
}

func TestASummaryIsReadFromTheCacheOfThePromptBefore(t *testing.T) {
	for name, open := range wires {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Start(t, modeltest.Text("Try 3."), modeltest.Text("Three tries."), modeltest.Text("Done."))
			before, j := overWire(t, 3, s, open), &journal{}
			if _, err := before.perform(t, j); err != nil {
				t.Fatal(err)
			}
			sent := find[protocol.Usage](j)[0]

			st, j := overWire(t, 4, s, open), &journal{}
			st.turn.LastUsage, st.turn.Role.Params = 32_001, `{"max_tokens":9}`
			if _, err := st.perform(t, j); err != nil {
				t.Fatal(err)
			}
			usage := find[protocol.Usage](j)
			if usage[0].Kind != protocol.UsageCompaction || usage[0].Cached == nil || *usage[0].Cached < *sent.Input-1 {
				t.Errorf("the summary read %d of the %d tokens that were sent before", *usage[0].Cached, *sent.Input)
			}
			if d := find[protocol.CompactionDraft](j)[0]; d.Summary != "## Summary of the conversation so far\n\nThree tries." {
				t.Errorf("got %+v", d)
			}
			bodies := s.Requests()
			ask, first := string(bodies[1].Body), string(bodies[2].Body)
			if none := strings.Contains(ask, `"tool_choice":"none"`); none != (name == "openai") || strings.Contains(first, "tool_choice") {
				t.Errorf("tool_choice of the summary: %s", ask)
			}
			if strings.Contains(ask, `"max_tokens":9`) || !strings.Contains(first, `"max_tokens":9`) {
				t.Errorf("max_tokens: %s\n%s", ask, first)
			}
		})
	}
}

// The servers refuse what the providers do: a call without its result, neighbours of one side.
func TestAVisitGoesOnFromASummaryOfItsOwnWork(t *testing.T) {
	call := func(id string) modeltest.Answer {
		return modeltest.Calls(modeltest.Call{ID: id + "1", Name: "read", Args: `{"n":300}`}, modeltest.Call{ID: id + "2", Name: "read", Args: `{"n":200}`})
	}
	for name, open := range wires {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Start(t, call("a"), call("b"), modeltest.Text("All r."), modeltest.Text("Done."))
			st, j := overWire(t, 1, s, open), &journal{}
			// The first call is below it, the second past it.
			st.turn.Role.Compaction = &protocol.CompactionSpec{Watermark: 200}
			c, err := st.perform(t, j)
			if err != nil || *c.Text != "Done." {
				t.Fatalf("%v %v", err, j.types())
			}
			if d := cmp.Diff([]string{"prompt", "tool_call+tool_call+usage", "tool_result", "tool_result",
				"tool_call+tool_call+usage", "tool_result", "tool_result", "usage+compacted", "text+usage"}, j.types()); d != "" {
				t.Error(d)
			}
			usage := find[protocol.Usage](j)
			if *usage[2].Cached < *usage[1].Input-1 {
				t.Errorf("the summary read %d of the %d tokens that were sent before", *usage[2].Cached, *usage[1].Input)
			}
			if *usage[3].Input >= *usage[2].Input {
				t.Errorf("it went on with %d tokens after %d", *usage[3].Input, *usage[2].Input)
			}
		})
	}
}
