package openai_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"
	"pgregory.net/rapid"

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
		thinking: "let me", calls: "read({}) ", back: []string{`"reasoning_content":"let me"`}, own: true},
	"content in parts (Mistral)": {
		events: []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"part "},{"type":"reference","reference_ids":[1]}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"answer"},"finish_reason":"stop"}]}`},
		text: "part answer", thinking: "hm", back: []string{`"content":"part answer"`}},
	"two whole calls under one index": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"n\":1}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"n\":2}"}}]},"finish_reason":"tool_calls"}]}`},
		calls: `read({"n":1}) read({"n":2}) `},
	"a name in the last piece too": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"n\":\"\\\"}\"}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":""}}]},"finish_reason":"tool_calls"}]}`},
		calls: `read({"n":"\"}"}) `},
	"another name without arguments": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{}"}},{"index":0,"function":{"name":"list","arguments":""}}]},"finish_reason":"tool_calls"}]}`},
		calls:  `read({}) list() `},
	"members with odd names": {
		events: []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"ID":"c1","function":{"name":"read","arguments":"{}"},"a\"b":{"sig":"ODD"}}]},"finish_reason":"tool_calls"}]}`},
		calls:  "read({}) ", back: []string{`"arguments":"{}"},"a\"b":{"sig":"ODD"}}]`}},
	"details of reasoning that are no list of objects": {
		events: []string{`{"choices":[{"index":0,"delta":{"content":"a","reasoning_details":"none"}}]}`, `{"choices":[{"index":0,"delta":{"content":"b","reasoning_details":{"x":1}}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"c","reasoning_details":["x"]},"finish_reason":"stop"}]}`},
		text: "abc"},
	"parts that hold nothing that is read": {
		events: []string{`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":"hm"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","closed":true},{"type":"text"},{"type":"other","text":{"a":1}},{"type":"text","text":"ok"}]},"finish_reason":"stop"}]}`},
		text: "ok", thinking: "hm"},
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

// TestAnAnswerInManyPiecesCostsWhatItHolds makes each answer of n pieces and of eight times as many: the memory that is taken must not
// grow with the square.
func TestAnAnswerInManyPiecesCostsWhatItHolds(t *testing.T) {
	piece := func(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }
	for name, events := range map[string]func(n int) []string{
		"details of reasoning": func(n int) []string {
			return slices.Repeat([]string{piece(`{"reasoning_details":[{"type":"t","index":0,"text":"abcdefghijklmnop"}]}`)}, n)
		},
		"parts of content": func(n int) []string {
			return []string{piece(`{"content":[` + strings.Repeat(`{"type":"text","text":"abcdefghijklmnop"},`, n) + `{}]}`)}
		},
		"thoughts within thoughts": func(n int) []string {
			return []string{piece(`{"content":` + strings.Repeat(`[{"type":"thinking","thinking":`, n/8) + `"` + strings.Repeat("x", 16*n) + `"` + strings.Repeat(`}]`, n/8) + `}`)}
		},
	} {
		taken := func(n int) uint64 {
			end := []string{`{"choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}]}`, "[DONE]"}
			m := open(t, modeltest.Start(t, modeltest.Answer{Events: append(events(n), end...), End: true}))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := m.GenerateContent(t.Context(), hello); err != nil {
				t.Fatal(name, err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := taken(1000), taken(8000); many > 16*few {
			t.Errorf("%s: 1000 pieces take %d bytes, and 8000 of them %d", name, few, many)
		}
	}
}

// TestCallsWithANameInEachPieceAreTold makes two calls under one index, whose arguments come in pieces of any length, each with the name.
func TestCallsWithANameInEachPieceAreTold(t *testing.T) {
	object := rapid.MapOfN(rapid.StringMatching(`[a{}"\\]{0,3}`), rapid.OneOf(rapid.StringMatching(`[]a{}[": \\]{0,6}`).AsAny(), rapid.Int().AsAny(), rapid.Just([]any{map[string]any{}, nil}).AsAny()), 0, 3)
	rapid.Check(t, func(r *rapid.T) {
		var events []string
		var want []string
		for range 2 {
			args, err := json.Marshal(object.Draw(r, "arguments"))
			if err != nil {
				r.Fatal(err)
			}
			want = append(want, string(args))
			for rest := string(args); rest != ""; {
				n := rapid.IntRange(1, len(rest)).Draw(r, "bytes")
				piece, err := json.Marshal(rest[:n])
				if err != nil {
					r.Fatal(err)
				}
				events = append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":%s}}]}}]}`, piece))
				rest = rest[n:]
			}
		}
		events = append(events, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
		res, err := open(t, modeltest.Start(t, modeltest.Answer{Events: events, End: true})).GenerateContent(t.Context(), hello)
		if err != nil {
			r.Fatal(err)
		}
		var got []string
		for _, c := range model.ReplyOf(res).Calls {
			got = append(got, c.Arguments)
		}
		if !slices.Equal(got, want) {
			r.Fatalf("the calls %q are read as %q", want, got)
		}
	})
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
			for _, word := range []string{"extra_content", "reasoning"} {
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
