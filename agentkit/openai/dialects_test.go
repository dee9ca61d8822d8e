package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
	"wf/protocol"
)

// dialects are answers as servers give them, as events of a stream, with what was said and what has to go back. A word of back is in
// the next request of the same model; of own ones another model at the same address is not sent it.
var dialects = map[string]struct {
	events   []string
	text     string
	thinking string
	calls    string   // name(arguments) …
	back     []string // in the next request
	own      bool
	input    int64 // tokens, 0 is not told
}{
	"a thought in a call (Gemini)": {
		events: []string{`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG=="}}}]},"finish_reason":"tool_calls"}]}`},
		calls:  "read({}) ", back: []string{`"arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG=="}}}`}, own: true},
	"a thought in the second of two calls": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}},{"index":1,"id":"c2","function":{"name":"list","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"extra_content":{"sig":"TWO"}}]},"finish_reason":"tool_calls"}]}`},
		calls: "read({}) list({}) ", back: []string{`{"name":"read","arguments":"{}"}},`, `{"name":"list","arguments":"{}"},"extra_content":{"sig":"TWO"}}`}, own: true},
	"details of reasoning (OpenRouter)": {
		events: []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"thi","reasoning_details":[{"type":"reasoning.text","text":"thi","signature":null,"format":"f","index":0}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning":"nk","reasoning_details":[{"type":"reasoning.text","text":"nk","signature":"SIG","format":"f","index":0}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"ENC","index":1}],"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`},
		thinking: "think", calls: "read({}) ", own: true,
		back: []string{`"reasoning_details":[{"format":"f","index":0,"signature":"SIG","text":"think","type":"reasoning.text"},{"data":"ENC","index":1,"type":"reasoning.encrypted"}]`}},
	"a thought beside (DeepSeek)": {
		events: []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"let me"}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"","reasoning_content":null,"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`},
		thinking: "let me", calls: "read({}) ", back: []string{`"reasoning_content":"let me"`}},
	"content in parts (Mistral)": {
		events: []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"part "},{"type":"reference","reference_ids":[1]}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"answer"},"finish_reason":"stop"}]}`},
		text: "part answer", thinking: "hm", back: []string{`"content":"part answer"`}},
	"two whole calls under one index": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"n\":1}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"n\":2}"}}]},"finish_reason":"tool_calls"}]}`},
		calls: `read({"n":1}) read({"n":2}) `},
	"a name in each piece": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"n\""}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":":2}"}}]},"finish_reason":"tool_calls"}]}`},
		calls: `read({"n":2}) `},
	"arguments that are none": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":"{\"n\": oops"}},{"index":1,"id":"c2","function":{"name":"read","arguments":"null"}},{"index":2,"id":"c3","function":{"name":"read","arguments":"\"{\\\"n\\\":3}\""}}]},"finish_reason":"tool_calls"}]}`},
		calls:  `read({"n": oops) read(null) read("{\"n\":3}") `, back: []string{`"arguments":"{\"invalid_json\":\"{\\\"n\\\": oops\"}"`, `"arguments":"{}"`, `"arguments":"{\"n\":3}"`}},
	"counts as decimals and texts": {
		events: []string{`{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5.0,"completion_tokens":"2","prompt_tokens_details":null}}`},
		text:   "ok", input: 5},
	"no choices": {
		events: []string{`{"choices":null,"usage":null}`, `{"choices":[{"index":0,"delta":{"content":"ok","annotations":[{}],"audio":null,"function_call":null},"finish_reason":"stop","native_finish_reason":"STOP"}]}`},
		text:   "ok"},
}

func TestDialectsOfServers(t *testing.T) {
	for name, c := range dialects {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Start(t, modeltest.Answer{Events: append(c.events, "[DONE]"), End: true}, modeltest.Text("done"), modeltest.Text("done"))
			m := open(t, s)
			res, err := m.GenerateContent(t.Context(), hello)
			if err != nil {
				t.Fatal(err)
			}
			r := model.ReplyOf(res)
			var calls strings.Builder
			parts := []llms.ContentPart{llms.TextContent{Text: r.Text}}
			var results []llms.MessageContent
			for i, x := range r.Calls {
				calls.WriteString(x.Name + "(" + x.Arguments + ") ")
				id := fmt.Sprint("c", i)
				parts = append(parts, llms.ToolCall{ID: id, FunctionCall: &llms.FunctionCall{Name: x.Name, Arguments: x.Arguments}})
				results = append(results, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: id, Content: "ok"}}})
			}
			if d := cmp.Diff([]any{c.text, c.thinking, c.calls, c.input}, []any{r.Text, r.Thinking, calls.String(), r.Counts[model.KeyInput]}); d != "" {
				t.Error(d)
			}
			again := append(append([]llms.MessageContent{}, hello...), llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: parts})
			again = append(append(again, results...), hello[len(hello)-1])
			ctx := model.WithRequest(t.Context(), model.Request{Opaque: map[int]string{len(hello): r.Opaque}, Params: protocol.JSON(`{}`)})
			other, err := openai.New("openai/other", "other", openai.Config{BaseURL: s.URL, Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []*openai.Model{m, other} {
				if _, err := m.GenerateContent(ctx, again); err != nil {
					t.Fatal(err)
				}
			}
			sent := s.Requests()
			for _, word := range c.back {
				if !strings.Contains(string(sent[1].Body), word) {
					t.Errorf("%s is not in %s", word, sent[1].Body)
				}
			}
			for _, word := range []string{"extra_content", "reasoning_details"} {
				if c.own && strings.Contains(string(sent[2].Body), word) {
					t.Errorf("another model is sent %s: %s", word, sent[2].Body)
				}
			}
			if !json.Valid(sent[1].Body) || strings.Contains(string(sent[1].Body), `"own"`) {
				t.Errorf("the request is %s", sent[1].Body)
			}
		})
	}
}
