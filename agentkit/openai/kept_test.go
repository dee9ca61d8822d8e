package openai_test

import (
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
	"wf/protocol"
)

// Behind another prefix a reply loses what is signed or encrypted for the one that it had; a thought in words and what came with a
// call stay, since servers want them in a loop of tools.
func TestF103WhatIsBoundToAPrefixDoesNotOutliveIt(t *testing.T) {
	s := modeltest.Start(t, modeltest.Answer{End: true, Events: []string{
		`{"choices":[{"index":0,"delta":{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"SIG","index":0}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"GEM"}}}]},"finish_reason":"tool_calls"}]}`,
		"[DONE]"}}, modeltest.Text("done"), modeltest.Text("done"))
	m := open(t, s)
	res, err := m.GenerateContent(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	again := append(hello[:len(hello):len(hello)], called("c1"), answered("c1"))
	for moved, want := range map[int]bool{0: true, len(hello) + 1: false} {
		r := model.Request{Opaque: map[int]string{len(hello): model.ReplyOf(res).Opaque}, Params: protocol.JSON(`{}`), Moved: moved}
		if _, err := m.GenerateContent(model.WithRequest(t.Context(), r), again); err != nil {
			t.Fatal(err)
		}
		sent := s.Requests()
		body := string(sent[len(sent)-1].Body)
		if strings.Contains(body, "SIG") != want || !strings.Contains(body, "GEM") || !strings.Contains(body, `"reasoning":"hm"`) {
			t.Errorf("%d messages were said behind another prefix: %s", moved, body)
		}
	}
}

func called(id string) llms.MessageContent {
	return llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.ToolCall{ID: id, FunctionCall: &llms.FunctionCall{Name: "read", Arguments: "{}"}}}}
}

func answered(id string) llms.MessageContent {
	return llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: id, Content: "ok"}}}
}

// An id that is longer than others take goes back to the server that made it alone.
func TestF109LongIdsStayWithTheServerThatMadeThem(t *testing.T) {
	long := "call_" + strings.Repeat("x", 90)
	s := modeltest.Start(t, modeltest.Calls(modeltest.Call{ID: long, Name: "read", Args: "{}"}), modeltest.Text("done"), modeltest.Text("done"))
	s.IDLength = len(long)
	m := open(t, s)
	res, err := m.GenerateContent(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openai.New("openai/other", "other", openai.Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	r := model.Request{Opaque: map[int]string{len(hello): model.ReplyOf(res).Opaque}}
	for i, m := range []*openai.Model{m, other} {
		if _, err := m.GenerateContent(model.WithRequest(t.Context(), r), append(hello[:len(hello):len(hello)], called(long), answered(long))); err != nil {
			t.Fatal(err) // the server refuses a result without its call
		}
		if body := string(s.Requests()[i+1].Body); strings.Contains(body, long) != (i == 0) {
			t.Errorf("request %d is %s", i, body)
		}
	}
}
