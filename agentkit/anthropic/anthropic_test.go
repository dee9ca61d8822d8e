package anthropic_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/protocol"
)

func TestTheSuite(t *testing.T) {
	modeltest.Exercise(t, modeltest.Wire{
		Name: "anthropic/test",
		Open: func(s *modeltest.Server, idle time.Duration) (llms.Model, error) {
			return anthropic.New("anthropic/test", "test", anthropic.Config{BaseURL: s.Root, Key: "k", Idle: idle})
		},
		At: func(base string) (llms.Model, error) {
			return anthropic.New("anthropic/test", "test", anthropic.Config{BaseURL: base})
		},
		Signs: true,
	})
}

var hello = []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be brief."), llms.TextParts(llms.ChatMessageTypeHuman, "Hello")}

func ask(t *testing.T, s *modeltest.Server, c anthropic.Config, r model.Request, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, string) {
	t.Helper()
	c.BaseURL, c.Key = s.URL, "k"
	m, err := anthropic.New("anthropic/test", "test", c)
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.GenerateContent(model.WithRequest(t.Context(), r), messages, options...)
	if err != nil {
		t.Fatal(err)
	}
	requests := s.Requests()
	return res, string(requests[len(requests)-1].Body)
}

func call(id, args string) llms.ToolCall {
	return llms.ToolCall{ID: id, FunctionCall: &llms.FunctionCall{Name: "f", Arguments: args}}
}

func result(id string) llms.MessageContent {
	return llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: id, Content: "did " + id}}}
}

func TestTheBytesOfARequest(t *testing.T) {
	s := modeltest.Start(t, modeltest.Text("hi"))
	conversation := append(hello[:2:2],
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.TextContent{Text: "I look."}, call("a", `{"n": 12345678901234567890}`), call("no good id", ``)}},
		result("a"), result("no good id"))
	opaque := `{"anthropic":[{"type":"thinking","thinking":"<hm>","signature":"s="},"text",{"type":"redacted_thinking","data":"x"},"call","call"]}`
	_, body := ask(t, s, anthropic.Config{TTL: "1h"}, model.Request{
		Params: protocol.JSON(`{"betas":["b-1","b-2"],"temperature":"1.0","thinking":{"budget_tokens":2000,"type":"enabled"}}`),
		Prompt: 2, Opaque: map[int]string{2: opaque}, Failed: map[int]bool{4: true},
	}, conversation, llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}}}))
	const mark = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	want := strings.ReplaceAll(`{"model":"test","max_tokens":18000,"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],`+
		`"system":[{"type":"text","text":"Be brief.",MARK}],"messages":[{"role":"user","content":[{"type":"text","text":"Hello",MARK}]},`+
		`{"role":"assistant","content":[{"type":"thinking","thinking":"<hm>","signature":"s="},{"type":"text","text":"I look."},{"type":"redacted_thinking","data":"x"},`+
		`{"type":"tool_use","id":"a","name":"f","input":{"n":12345678901234567890}},{"type":"tool_use","id":"call_BAD","name":"f","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"did a"},{"type":"tool_result","tool_use_id":"call_BAD","content":"did no good id","is_error":true,MARK}]}],`+
		`"temperature":1.0,"thinking":{"budget_tokens":2000,"type":"enabled"},"stream":true}`, "MARK", mark)
	want = strings.ReplaceAll(want, "BAD", "34af0476f5e286ed52d8b6cf")
	if d := cmp.Diff(want, body); d != "" {
		t.Error(d)
	}
	r := s.Requests()[0]
	if r.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "k" || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Anthropic-Beta") != "b-1,b-2" {
		t.Errorf("asked %s with %v", r.Path, r.Header)
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
	conversation := append(hello[:2:2],
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.TextContent{Text: "I <look> & see: 世界\u2028."}, call("a", `{"n": 12345678901234567890}`)}},
		result("a"),
		llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.TextContent{Text: "And this?"}, llms.BinaryContent{MIMEType: "image/png", Data: []byte{1, 2, 255}}}})
	ask(t, s, anthropic.Config{}, model.Request{
		Params: protocol.JSON(`{"betas":["b-1","b-2"],"temperature":"0.50","tool_choice":"f"}`), Prompt: 2,
		Opaque: map[int]string{2: `{"anthropic":[{"type":"thinking","thinking":"<hm>","signature":"s="},"text","call"]}`},
	}, conversation, llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Description: "d <1>",
		Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}}))
	if d := cmp.Diff(string(want), s.Requests()[0].Text()); d != "" {
		t.Error(d)
	}
}

func TestMarksAreAtMostFourAndReachBack(t *testing.T) {
	for name, c := range map[string]struct {
		rounds []int // calls in each round
		want   int
		then   string // of the texts that are marked, the last ones
	}{
		"only the prompt":   {nil, 2, "Hello"},
		"one round":         {[]int{1}, 3, "Hello 1.1"},
		"few blocks":        {[]int{2, 2, 2}, 3, "Hello 3.2"},
		"many blocks":       {[]int{8, 2}, 4, "Hello 1.8 2.2"},
		"many in one round": {[]int{20}, 3, "Hello 1.20"},
		"a long loop":       {[]int{3, 3, 3, 3, 3, 3}, 4, "Hello 5.3 6.3"},
	} {
		messages := hello[:2:2]
		for i, n := range c.rounds {
			reply := llms.MessageContent{Role: llms.ChatMessageTypeAI}
			var results []llms.MessageContent
			for j := range n {
				id := string(rune('a'+i)) + string(rune('a'+j))
				reply.Parts = append(reply.Parts, call(id, "{}"))
				results = append(results, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
					llms.ToolCallResponse{ToolCallID: id, Content: strings.TrimSpace(strings.Join([]string{itoa(i + 1), itoa(j + 1)}, "."))}}})
			}
			messages = append(append(messages, reply), results...)
		}
		_, body := ask(t, modeltest.Start(t, modeltest.Text("hi")), anthropic.Config{}, model.Request{Prompt: 2}, messages)
		var shape struct {
			System   []block
			Messages []struct{ Content []block }
		}
		if err := json.Unmarshal([]byte(body), &shape); err != nil {
			t.Fatal(err)
		}
		var marked []string
		for _, m := range shape.Messages {
			for _, b := range m.Content {
				if b.Mark != nil {
					marked = append(marked, b.Text+b.Content)
				}
			}
		}
		if got := strings.Count(body, "cache_control"); got != c.want || shape.System[0].Mark == nil || strings.Join(marked, " ") != c.then {
			t.Errorf("%s: %d marks, at %v", name, got, marked)
		}
	}
}

type block struct {
	Text, Content string
	Mark          any `json:"cache_control"`
}

func itoa(n int) string {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestUsageIsAllPromptTokens(t *testing.T) {
	s := modeltest.Start(t, modeltest.Answer{Events: []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`,
	}})
	res, _ := ask(t, s, anthropic.Config{}, model.Request{}, hello)
	u := model.UsageOf(res)
	if *u.Input != 240 || *u.Cached != 200 || *u.CacheWrite5m != 20 || *u.CacheWrite1h != 10 || *u.Output != 7 || u.Reasoning != nil {
		t.Errorf("got %+v", u)
	}
}

func TestUsageThatCannotBeIsNone(t *testing.T) {
	s := modeltest.Start(t, modeltest.Answer{Events: []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":-200,"cache_creation_input_tokens":9223372036854775807,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":-7}}`,
	}})
	res, _ := ask(t, s, anthropic.Config{}, model.Request{}, hello)
	if u := model.UsageOf(res); *u.Input != 10 || u.Cached != nil || u.CacheWrite5m != nil || u.Output != nil {
		t.Errorf("got %+v", u)
	}
}

func TestAResponseThatIsNoStream(t *testing.T) {
	s := modeltest.Start(t, modeltest.Answer{Header: map[string]string{"Content-Type": "application/json"}, Body: `{"content":[` +
		`{"type":"redacted_thinking","data":"x", "later":1},{"type":"text","text":"Hi"},{"type":"tool_use","id":"a","name":"f","input":{"n": 12345678901234567890}}],` +
		`"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`})
	res, _ := ask(t, s, anthropic.Config{}, model.Request{}, hello)
	c := res.Choices[0]
	if c.Content != "Hi" || c.ToolCalls[0].FunctionCall.Arguments != `{"n": 12345678901234567890}` || c.StopReason != "tool_use" {
		t.Errorf("got %+v", c)
	}
	if got := model.ReplyOf(res).Opaque; !strings.HasSuffix(got, `"blocks":[{"raw":{"type":"redacted_thinking","data":"x","later":1},"bound":true},{"text":2},{"call":true}]}}`) {
		t.Errorf("the block is %s", got)
	}
}

func TestWithoutKeyAndServerItSaysWhatToDo(t *testing.T) {
	t.Setenv("ANTHROPIC_BASE_URL", "")
	t.Setenv("ANTHROPIC_API_KEY", "")
	_, err := anthropic.Open("anthropic/claude")
	if !errors.Is(err, protocol.ErrModel) || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") || !strings.Contains(err.Error(), "--model") {
		t.Errorf("got %v", err)
	}
	t.Setenv("ANTHROPIC_BASE_URL", "ftp//x")
	if _, err := anthropic.Open("anthropic/claude"); !errors.Is(err, protocol.ErrModel) {
		t.Errorf("got %v", err)
	}
	s := modeltest.Start(t, modeltest.Text("hi"))
	t.Setenv("ANTHROPIC_BASE_URL", s.Root)
	t.Setenv("ANTHROPIC_API_KEY", "from the environment")
	m, err := anthropic.Open("anthropic/claude-x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.GenerateContent(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	if r := s.Requests()[0]; !strings.Contains(string(r.Body), `"model":"claude-x"`) || r.Header.Get("X-Api-Key") != "from the environment" {
		t.Errorf("sent %s", r.Body)
	}
}

func TestWhatCannotBeSentIsInvalid(t *testing.T) {
	s := modeltest.Start(t)
	m, err := anthropic.New("anthropic/test", "test", anthropic.Config{BaseURL: s.Root})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		params   string
		messages []llms.MessageContent
	}{
		"a late system message": {"", append(hello[:2:2], hello[0])},
		"our own param":         {`{"stream":false}`, hello},
		"a lifetime":            {`{"cache_ttl":"2h"}`, hello},
		"params":                {`[]`, hello},
	} {
		_, err := m.GenerateContent(model.WithRequest(t.Context(), model.Request{Params: protocol.JSON(c.params)}), c.messages)
		if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
