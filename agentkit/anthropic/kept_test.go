package anthropic

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
)

// replied is a reply of such events, as a message and its opaque block.
func replied(t *testing.T, strict bool, events ...string) (llms.MessageContent, string) {
	t.Helper()
	s := &stream{name: "m", self: "self", strict: strict, opts: &llms.CallOptions{}}
	body := "data: " + strings.Join(append(events, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`), "\n\ndata: ") + "\n\n"
	if err := s.read(context.Background(), http.Header{}, strings.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	res, err := s.response()
	if err != nil {
		t.Fatal(err)
	}
	r := model.ReplyOf(res)
	m := llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.TextContent{Text: r.Text}}}
	for _, c := range r.Calls {
		m.Parts = append(m.Parts, llms.ToolCall{ID: c.ID, FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: c.Arguments}})
	}
	return m, r.Opaque
}

// sentBack is the blocks of a message in a request.
func sentBack(t *testing.T, m llms.MessageContent, r model.Request, self string, binding bool) string {
	t.Helper()
	c, err := convert([]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "Hello"), m}, r, self, binding)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(c.turns[1].Content)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const (
	textA   = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`
	signed  = `{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"hm","signature":"s","later":[1]}}`
	textB   = `{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"b","citations":[{"x":1}]}}`
	theCall = `{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}`

	sentText, sentThought = `{"type":"text","text":"a"}`, `{"type":"thinking","thinking":"hm","signature":"s","later":[1]}`
	sentCited, sentCall   = `{"type":"text","text":"b","citations":[{"x":1}]}`, `{"type":"tool_use","id":"c","name":"f","input":{}}`
	sentPlain             = `{"type":"text","text":"ab"}`
)

func TestF109WhatOfAReplyGoesBack(t *testing.T) {
	all := []string{textA, signed, textB, theCall}
	hidden := func(m *llms.MessageContent) { m.Parts[0] = llms.TextContent{Text: "[x]b"} }
	for name, c := range map[string]struct {
		events  []string
		strict  bool
		to      string // "" is the same model
		moved   bool
		budget  bool
		changed func(*llms.MessageContent)
		want    []string
	}{
		"the same model":            {events: all, want: []string{sentText, sentThought, sentCited, sentCall}},
		"another model":             {events: all, to: "other", want: []string{sentPlain, sentCall}},
		"behind another prefix":     {events: all, moved: true, want: []string{sentText, sentCited, sentCall}},
		"by a budget nothing binds": {events: all, moved: true, budget: true, want: []string{sentText, sentThought, sentCited, sentCall}},
		"something was hidden":      {events: all, changed: hidden, want: []string{`{"type":"text","text":"[x]b"}`, sentCall}},
		"an unsigned thought": {events: []string{`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}`, theCall},
			want: []string{`{"type":"thinking","thinking":"hm"}`, sentCall}},
		"an unsigned thought to Anthropic": {strict: true, events: []string{`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":""}}`, theCall},
			want: []string{sentCall}},
		"pieces that nobody knows": {events: []string{`{"type":"content_block_start","index":0,"content_block":{"type":"new"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","of":1}}`, signed, theCall}, want: []string{sentCall}},
		"a block that is none": {events: []string{`{"type":"content_block_start","index":0,"content_block":null}`, signed, theCall}, want: []string{sentCall}},
	} {
		t.Run(name, func(t *testing.T) {
			m, opaque := replied(t, c.strict, c.events...)
			r, self := model.Request{Opaque: map[int]string{1: opaque}}, "self"
			if c.to != "" {
				self = c.to
			}
			if c.moved {
				r.Moved = 2
			}
			if c.changed != nil {
				c.changed(&m)
			}
			if d := cmp.Diff("["+strings.Join(c.want, ",")+"]", sentBack(t, m, r, self, !c.budget)); d != "" {
				t.Error(d)
			}
		})
	}
}

// What earlier versions kept goes back as they sent it, but behind another prefix.
func TestF109WhatEarlierVersionsKept(t *testing.T) {
	m := llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.TextContent{Text: "ab"},
		llms.ToolCall{ID: "c", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}}}
	r := model.Request{Opaque: map[int]string{1: `{"anthropic":[{"type":"server","x":1},` + sentThought + `,"text",{"type":"redacted_thinking","data":"x"},"text","call"]}`}}
	if d := cmp.Diff(`[{"type":"server","x":1},`+sentThought+`,`+sentPlain+`,{"type":"redacted_thinking","data":"x"},`+sentCall+`]`, sentBack(t, m, r, "any", true)); d != "" {
		t.Error(d)
	}
	r.Moved = 2
	if d := cmp.Diff(`[{"type":"server","x":1},`+sentPlain+`,`+sentCall+`]`, sentBack(t, m, r, "any", true)); d != "" {
		t.Error(d)
	}
}

// A block of a journal that was written wrongly does not end the process.
func TestAKeptReplyThatCannotBe(t *testing.T) {
	m := llms.TextParts(llms.ChatMessageTypeAI, "a")
	sum := said{text: "a"}.sum()
	for _, n := range []string{"-1", "2", "9223372036854775807"} {
		r := model.Request{Opaque: map[int]string{1: `{"reply":{"of":"self","sum":"` + sum + `","blocks":[{"text":` + n + `},{"call":true}]}}`}}
		if got := sentBack(t, m, r, "self", true); got != `[{"type":"text","text":"a"}]` {
			t.Errorf("%s: %s", n, got)
		}
	}
}
