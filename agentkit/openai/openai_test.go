package openai_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/agentkit/openai"
	"wf/protocol"
)

func open(t *testing.T, s *modeltest.Server) *openai.Model {
	t.Helper()
	m, err := openai.New("openai/test", "test", openai.Config{BaseURL: s.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var hello = []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be <brief> & kind."), llms.TextParts(llms.ChatMessageTypeHuman, "Hello")}

func TestTheSuite(t *testing.T) {
	modeltest.Exercise(t, modeltest.Wire{
		Name: "openai/test",
		Open: func(s *modeltest.Server, idle time.Duration) (llms.Model, error) {
			return openai.New("openai/test", "test", openai.Config{BaseURL: s.URL, Key: "k", Idle: idle})
		},
		At: func(base string) (llms.Model, error) {
			return openai.New("openai/test", "test", openai.Config{BaseURL: base})
		},
	})
}

func TestTheRequestIsTheSameBytesEveryTime(t *testing.T) {
	s := modeltest.Start(t, modeltest.Text("hi"), modeltest.Text("hi"))
	m := open(t, s)
	conversation := append(hello[:2:2],
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
			llms.ToolCall{ID: "a", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"n":12345678901234567890}`}},
			llms.ToolCall{ID: "b", FunctionCall: &llms.FunctionCall{Name: "g", Arguments: ``}}}},
		llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: "a", Content: "1"}, llms.ToolCallResponse{ToolCallID: "b", Content: "2"}}})
	ctx := model.WithRequest(t.Context(), model.Request{
		Params: protocol.JSON(`{"max_tokens":9,"seed":7,"temperature":"0.0"}`), Opaque: map[int]string{2: `{"reasoning_content":"<hm>"}`}, CacheKey: "key",
	})
	tools := llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}}})
	for range 2 {
		if _, err := m.GenerateContent(ctx, conversation, tools); err != nil {
			t.Fatal(err)
		}
	}
	const want = `{"model":"test","messages":[{"role":"system","content":"Be <brief> & kind."},{"role":"user","content":"Hello"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":12345678901234567890}"}},` +
		`{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}],"reasoning_content":"<hm>"},` +
		`{"role":"tool","content":"1","tool_call_id":"a"},{"role":"tool","content":"2","tool_call_id":"b"}],` +
		`"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],` +
		`"max_tokens":9,"seed":7,"temperature":0.0,"prompt_cache_key":"key","stream":true,"stream_options":{"include_usage":true}}`
	r := s.Requests()
	if d := cmp.Diff(want, string(r[0].Body)); d != "" {
		t.Error(d)
	}
	if string(r[1].Body) != string(r[0].Body) {
		t.Error("the second request differs")
	}
	key := r[0].Header.Get("Idempotency-Key")
	if len(key) != 64 || key != r[1].Header.Get("Idempotency-Key") {
		t.Errorf("the idempotency key is %q", key)
	}
	if r[0].Path != "/v1/chat/completions" || r[0].Header.Get("Authorization") != "Bearer k" {
		t.Errorf("asked %s with %v", r[0].Path, r[0].Header)
	}
}

// The file was recorded from the official client library: providers find a cached prefix by its
// bytes.
func TestAWholeRequestIsByteForByteTheRecordedOne(t *testing.T) {
	want, err := os.ReadFile("testdata/request.http")
	if err != nil {
		t.Fatal(err)
	}
	s := modeltest.Start(t, modeltest.Text("hi"))
	m, err := openai.New("openai/test", "gpt-5", openai.Config{BaseURL: s.URL, Key: "k", Marks: true, Llama: true})
	if err != nil {
		t.Fatal(err)
	}
	conversation := append(hello[:2:2],
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
			llms.TextContent{Text: "I <look> & see: 世界\u2028."},
			llms.ToolCall{ID: "a", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"n": 12345678901234567890}`}}}},
		llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "a", Content: "1 < 2"}}},
		llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
			llms.TextContent{Text: "And this?"}, llms.ImageURLContent{URL: "https://x.example/?a=1&b=2", Detail: "low"}, llms.BinaryContent{MIMEType: "image/png", Data: []byte{1, 2, 255}}}})
	ctx := model.WithRequest(t.Context(), model.Request{
		Params: protocol.JSON(`{"id_slot":1,"max_tokens":9,"seed":7,"speculative":{"n_max":16},"temperature":"0.50","tool_choice":"f"}`), Prompt: 2,
		Opaque: map[int]string{2: `{"reasoning_content":"<hm>"}`}, CacheKey: "key",
	})
	tools := llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Description: "d <1>",
		Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}})
	if _, err := m.GenerateContent(ctx, conversation, tools); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), s.Requests()[0].Text()); d != "" {
		t.Error(d)
	}
}

func TestB08InterleavedCallsAssemble(t *testing.T) {
	want := []modeltest.Call{{ID: "a", Name: "read_file", Args: `{"path":"a.go"}`}, {ID: "b", Name: "big", Args: `{"n":12345678901234567890}`}, {ID: "c", Name: "none", Args: ""}}
	piece := modeltest.CallDelta
	for name, a := range map[string]modeltest.Answer{
		"interleaved": modeltest.Calls(want...),
		"repeated type, id and name": {Events: []string{
			piece(0, "a", "read_file", `{"path":`), piece(0, "a", "read_file", `"a.go"}`),
			piece(1, "b", "big", `{"n":12345678901234567890}`), piece(2, "c", "none", ""), modeltest.Finish("tool_calls")}},
		"one index for all": {Events: []string{
			piece(0, "a", "read_file", `{"path":"a.go"}`), piece(0, "b", "big", `{"n":12345678901234567890}`), piece(0, "c", "none", "")}},
		"no index": {Events: []string{
			`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"read_file","arguments":"{\"path\":"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"\"a.go\"}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"big","arguments":{"n":12345678901234567890}}},{"id":"c","function":{"name":"none"}}]}}]}`}},
		"no stream": {Header: map[string]string{"Content-Type": "application/json"}, Body: `{"choices":[{"index":0,"message":{"content":null,"tool_calls":[` +
			`{"id":"a","function":{"name":"read_file","arguments":"{\"path\":\"a.go\"}"}},{"id":"b","function":{"name":"big","arguments":"{\"n\":12345678901234567890}"}},` +
			`{"id":"c","function":{"name":"none","arguments":""}}]}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open(t, modeltest.Start(t, a)).GenerateContent(t.Context(), hello)
			if err != nil {
				t.Fatal(err)
			}
			var got []modeltest.Call
			for _, c := range r.Choices[0].ToolCalls {
				got = append(got, modeltest.Call{ID: c.ID, Name: c.FunctionCall.Name, Args: c.FunctionCall.Arguments})
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFailuresOfOtherServers(t *testing.T) {
	for name, c := range map[string]struct {
		answer  modeltest.Answer
		message string
	}{
		"an error without a code": {modeltest.Answer{Events: []string{`{"error":{"message":"out of memory","type":"server_error"}}`}}, "out of memory"},
		"an error line":           {modeltest.Answer{Body: "error: {\"code\":500,\"message\":\"slot\"}\n\n"}, "slot"},
	} {
		_, err := open(t, modeltest.Start(t, c.answer)).GenerateContent(t.Context(), hello)
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.ServerError || !strings.Contains(e.Error(), c.message) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What ends a stream is finish_reason: [DONE] behind it may be missing, and is nothing without it.
func TestF16AStreamIsCompleteWithItsFinishReason(t *testing.T) {
	const text, finish = `data: {"choices":[{"index":0,"delta":{"content":"All of it."}}]}` + "\n\n", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	const used = `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5}}` + "\n\n"
	for name, c := range map[string]struct{ body, want string }{
		"without [DONE]":               {text + finish + used, ""},
		"without usage and [DONE]":     {text + finish, ""},
		"[DONE] without finish_reason": {text + used + "data: [DONE]\n\n", "without finish_reason"},
		"nothing but [DONE]":           {"data: [DONE]\n\n", "without finish_reason"},
		"neither":                      {text + used, "without finish_reason and [DONE]"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open(t, modeltest.Start(t, modeltest.Answer{Body: c.body})).GenerateContent(t.Context(), hello)
			if c.want == "" {
				if err != nil || r.Choices[0].Content != "All of it." || r.Choices[0].StopReason != "stop" {
					t.Errorf("got %+v, %v", r, err)
				}
				return
			}
			if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.ServerError || !strings.Contains(e.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What is said under refusal is no answer, whatever finish_reason says.
func TestF16ARefusalIsNoAnswer(t *testing.T) {
	a := modeltest.Answer{Events: []string{`{"choices":[{"index":0,"delta":{"refusal":"I cannot "}}]}`, `{"choices":[{"index":0,"delta":{"refusal":"help with that."}}]}`, modeltest.Finish("stop")}}
	r, err := open(t, modeltest.Start(t, a)).GenerateContent(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := model.StopOf("openai/test", r)
	if e := (*model.Error)(nil); stop != protocol.StopRefused || !errors.As(err, &e) || e.Class != model.Invalid || !strings.Contains(e.Error(), "I cannot help with that.") {
		t.Errorf("got %q, %v", stop, err)
	}
}

func TestReasoningUnderTwoNamesIsOneThought(t *testing.T) {
	a := modeltest.Answer{Events: []string{`{"choices":[{"delta":{"reasoning_content":"let me ","reasoning":"let me "}}]}`, `{"choices":[{"delta":{"reasoning_content":"see"}}]}`}}
	r, err := open(t, modeltest.Start(t, a)).GenerateContent(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	if got := model.ReplyOf(r).Opaque; !strings.HasSuffix(got, `"field":"reasoning_content","thought":"let me see"}}`) {
		t.Errorf("the block is %s", got)
	}
}

func TestUsageOfOtherServers(t *testing.T) {
	for name, c := range map[string]struct {
		event         string
		input, cached int64
	}{
		"DeepSeek":     {`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}}`, 100, 64},
		"llama-server": {`{"choices":[],"timings":{"cache_n":90,"prompt_n":10,"predicted_n":5}}`, 100, 90},
	} {
		r, err := open(t, modeltest.Start(t, modeltest.Answer{Events: []string{c.event}})).GenerateContent(t.Context(), hello)
		if err != nil {
			t.Fatal(err)
		}
		if u := model.UsageOf(r); *u.Input != c.input || *u.Cached != c.cached || *u.Output != 5 {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// Counts that no call can have are none: they would be no numbers of a record, or lower what was used.
func TestUsageThatCannotBeIsNone(t *testing.T) {
	for _, event := range []string{
		`{"choices":[],"usage":{"prompt_tokens":9007199254740992,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":-1}}}`,
		`{"choices":[],"timings":{"cache_n":-90,"prompt_n":10,"predicted_n":-1}}`,
		`{"choices":[],"timings":{"cache_n":9223372036854775807,"prompt_n":9223372036854775807}}`,
	} {
		r, err := open(t, modeltest.Start(t, modeltest.Answer{Events: []string{event}})).GenerateContent(t.Context(), hello)
		if err != nil {
			t.Fatal(err)
		}
		if u := model.UsageOf(r); u.Input != nil || u.Cached != nil || u.Output != nil {
			t.Errorf("%s: %+v", event, u)
		}
	}
}

func TestWithoutKeyAndServerItSaysWhatToDo(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "")
	_, err := openai.Open("openai/gpt-5")
	if !errors.Is(err, protocol.ErrModel) || !strings.Contains(err.Error(), "OPENAI_API_KEY") || !strings.Contains(err.Error(), "OPENAI_BASE_URL") || !strings.Contains(err.Error(), "--model") {
		t.Errorf("got %v", err)
	}
	t.Setenv("OPENAI_BASE_URL", "ftp//x")
	if _, err := openai.Open("openai/gpt-5"); !errors.Is(err, protocol.ErrModel) {
		t.Errorf("got %v", err)
	}
	s := modeltest.Start(t, modeltest.Text("hi"))
	t.Setenv("OPENAI_BASE_URL", s.URL)
	t.Setenv("OPENAI_API_KEY", "from the environment")
	m, err := openai.Open("openai/org/gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.GenerateContent(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	if r := s.Requests()[0]; !strings.Contains(string(r.Body), `"model":"org/gpt-5"`) || r.Header.Get("Authorization") != "Bearer from the environment" {
		t.Errorf("sent %s", r.Body)
	}
}
