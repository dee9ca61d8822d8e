package agentkit

import (
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/modeltest"
	"wf/protocol"
)

// TestF116WhatProvidersDoNotTellIsEstimated: where a provider tells nothing of what a call used, its size in bytes does; what it told
// before an answer broke off is not lost.
func TestF116WhatProvidersDoNotTellIsEstimated(t *testing.T) {
	const done = "---\nstatus: done\n---\n"
	told := `{"type":"message_start","message":{"usage":{"input_tokens":1000,"cache_read_input_tokens":200,"output_tokens":3}}}`
	silent := modeltest.Text(done)
	silent.Usage = false
	for name, c := range map[string]struct {
		wire    string
		answers []modeltest.Answer
		input   []int64 // of each usage; −1 is not told
		held    []bool
	}{
		"told":                       {"openai", []modeltest.Answer{modeltest.Text(done)}, []int64{0}, []bool{false}},
		"not told (OpenAI)":          {"openai", []modeltest.Answer{silent}, []int64{-1}, []bool{true}},
		"not told (Anthropic)":       {"anthropic", []modeltest.Answer{silent}, []int64{-1}, []bool{true}},
		"told, then broken off":      {"anthropic", []modeltest.Answer{{Events: []string{told}, Cut: true}, modeltest.Text(done)}, []int64{1200, 0}, []bool{false, false}},
		"told, then an error":        {"anthropic", []modeltest.Answer{{Events: []string{told, `{"type":"error","error":{"type":"api_error"}}`}, End: true}, modeltest.Text(done)}, []int64{1200, 0}, []bool{false, false}},
		"not told, then broken off":  {"openai", []modeltest.Answer{{Say: []modeltest.Piece{{Text: "hm"}}, Cut: true}, modeltest.Text(done)}, []int64{-1, 0}, []bool{true, false}},
		"refused before it answered": {"openai", []modeltest.Answer{{Status: 500}, modeltest.Text(done)}, []int64{-1, 0}, []bool{false, false}},
		"the answer alone is not told": {"anthropic", []modeltest.Answer{{Body: "data: " + strings.Join([]string{`{"type":"message_start","message":{"usage":{"input_tokens":9}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"---\nstatus: done\n---\n"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`,
			`{"type":"message_stop"}`}, "\n\ndata: ") + "\n\n"}}, []int64{9}, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			server, j := modeltest.Start(t, c.answers...), &journal{}
			s := newStage(t, "{}", "list_files")
			s.turn.Models = []string{c.wire + "/test"}
			s.agent.Models = func(string, string) (llms.Model, error) { return wires[c.wire](server) }
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			all := find[protocol.Usage](j)
			if len(all) != len(c.held) {
				t.Fatalf("the journal holds %+v", all)
			}
			for i, u := range all {
				if got := u.Input; c.input[i] < 0 && got != nil || c.input[i] > 0 && (got == nil || *got != c.input[i]) || (u.Held > 0) != c.held[i] {
					t.Errorf("call %d: input %v, held %d", i, got, u.Held)
				}
				if request := int64(len(server.Requests()[i].Body)); u.Held > request {
					t.Errorf("call %d of %d bytes is estimated at %d tokens", i, request, u.Held)
				}
			}
		})
	}
}

// Scripts have no tokens that a limit could hold.
func TestF116ScriptsAreNotEstimated(t *testing.T) {
	s, j := newStage(t, `coder#1: [{text: "`+strings.Repeat("x", 4000)+`"}, {text: "---\nstatus: done\n---\n"}]`), &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	for _, u := range find[protocol.Usage](j) {
		if u.Held != 0 {
			t.Errorf("got %+v", u)
		}
	}
}
