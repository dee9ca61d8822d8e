package prompt

import (
	"testing"

	"wf/protocol"
)

// What was said before the prefix changed is told apart from what was said since.
func TestF103WhatWasSaidBehindAnotherPrefix(t *testing.T) {
	turn := &protocol.Turn{Role: protocol.Role{Name: "coder"}, Models: []string{"m"}, History: protocol.History{Format: 1, Role: "coder", System: "You fix.",
		Visit: protocol.Past{Role: "coder", Visit: 1, EdgePrompt: "Fix it."}}}
	w, err := NewWork(turn, turn.Models, nil)
	if err != nil {
		t.Fatal(err)
	}
	round := func(id string) []protocol.Data {
		return []protocol.Data{protocol.ToolCall{Call: id, Name: "f", Args: protocol.NewText("{}")}, protocol.Usage{Model: "m"}, protocol.ToolResult{Call: id}}
	}
	p := len(w.Prompt)
	for i, x := range []struct {
		data []protocol.Data
		want int
	}{
		{round("a"), 0},
		{round("b"), 0},
		{round("c"), 0},
		{[]protocol.Data{protocol.Compacted{Scope: protocol.ScopeVisit, Replies: 2, Summary: protocol.NewText("s")}}, p + 4}, // summary, its answer, call, result
		{round("d"), p + 4},
		{[]protocol.Data{protocol.StepStarted{Messages: 1}}, p + 6},
		{round("e"), p + 6},
		{[]protocol.Data{protocol.Compacted{Scope: protocol.ScopeConversation}}, p + 8},
		{[]protocol.Data{protocol.ToolCall{Call: "f", Name: "f"}, protocol.Usage{Model: "m"}}, p + 8},
		{[]protocol.Data{protocol.StepStarted{Messages: 1}}, p + 9},
		{[]protocol.Data{protocol.AttemptFailed{Keeps: true, Error: protocol.ErrorInfo{Code: codeMaxTurns}}}, p + 8}, // the reply with the call is gone
		{[]protocol.Data{protocol.AttemptFailed{}}, 0},
	} {
		if err := w.Add(x.data...); err != nil {
			t.Fatal(err)
		}
		if got := w.Moved(); got != x.want {
			t.Errorf("after step %d: %d messages, want %d of %d", i, got, x.want, len(w.Request()))
		}
	}
}
