package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/protocol"
)

// Wire is an adapter under test.
type Wire struct {
	Name string // of its models: wire/test

	// Open makes a model against a server; idle as in its Config, 0 for the default.
	Open func(s *Server, idle time.Duration) (llms.Model, error)
	// At makes a model against hosts that do not answer.
	At func(base string) (llms.Model, error)

	Signs bool // thinking comes with a signature, and redacted
}

// Exercise checks that an adapter keeps the contract of package model, whatever the wire.
func Exercise(t *testing.T, w Wire) {
	for name, check := range map[string]func(*testing.T, Wire){
		"the request is the same bytes every time": sameBytes,
		"text, usage and deltas":                   textUsageDeltas,
		"B-08 interleaved calls assemble":          interleaved,
		"B-08 thinking stays apart and goes back":  thinking,
		"all results of a turn are sent":           parallelResults,
		"odd answers are answers":                  oddAnswers,
		"a tool may be forced":                     toolChoice,
		"F-113 params are sent as they were meant": paramsAsMeant,
		"F-113 what wf writes itself is reserved":  reservedParams,
		"a prefix is read from the cache":          prefix,
		"failures are typed":                       failures,
		"no listener":                              noListener,
		"a cancelled call is never a success":      cancelled,
		"silence is a timeout":                     silence,
		"a key follows no redirect":                redirect,
		"a refusal is read to a bound":             endlessRefusal,
		"F-414 calls of an answer have a bound":    manyCalls,
		"F-414 pieces of a call cost their length": manyPieces,
	} {
		t.Run(name, func(t *testing.T) { check(t, w) })
	}
}

func (w Wire) open(t *testing.T, s *Server) llms.Model {
	t.Helper()
	m, err := w.Open(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask makes one call that must work.
func (w Wire) ask(t *testing.T, s *Server, r model.Request, messages []llms.MessageContent, options ...llms.CallOption) model.Reply {
	t.Helper()
	res, err := w.open(t, s).GenerateContent(model.WithRequest(t.Context(), r), messages, options...)
	if err != nil {
		t.Fatal(err)
	}
	return model.ReplyOf(res)
}

func hello() []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be <brief> & kind."), llms.TextParts(llms.ChatMessageTypeHuman, "Hello")}
}

// said is an assistant message with calls, and their results in one message each.
func said(r model.Reply) []llms.MessageContent {
	out := []llms.MessageContent{{Role: llms.ChatMessageTypeAI}}
	if r.Text != "" {
		out[0].Parts = append(out[0].Parts, llms.TextContent{Text: r.Text})
	}
	for _, c := range r.Calls {
		out[0].Parts = append(out[0].Parts, llms.ToolCall{ID: c.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: c.Arguments}})
		out = append(out, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: c.ID, Name: c.Name, Content: "result of " + c.ID}}})
	}
	return out
}

var toolF = llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Description: "d <1>", Parameters: json.RawMessage(`{"type":"object"}`)}}})

func sameBytes(t *testing.T, w Wire) {
	s := Start(t, Text("hi"), Text("hi"))
	conversation := append(hello(), said(model.Reply{Calls: []protocol.CallMessage{
		{ID: "a", Name: "f", Arguments: `{"n": 12345678901234567890}`}, {ID: "b", Name: "f"},
	}})...)
	r := model.Request{Params: protocol.JSON(`{"max_tokens":9,"nested":{"x":["0.5"]},"temperature":"0.0","top_p":"1"}`), Prompt: 2, CacheKey: "key",
		Opaque: map[int]string{2: `{"someone_else":["secret thoughts"]}`}}
	for range 2 {
		w.ask(t, s, r, conversation, toolF)
	}
	requests := s.Requests()
	body := string(requests[0].Body)
	if body != string(requests[1].Body) {
		t.Error("the second request differs")
	}
	if key := requests[0].Header.Get("Idempotency-Key"); len(key) != 64 || key != requests[1].Header.Get("Idempotency-Key") {
		t.Errorf("the idempotency key is %q", key)
	}
	for _, want := range []string{`Be <brief> & kind.`, `12345678901234567890`, `d <1>`, `"temperature":0.0`, `"top_p":1`, `"nested":{"x":[0.5]}`, `"max_tokens":9`, `"stream":true`, `"model":"test"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
	if strings.Contains(body, "secret thoughts") {
		t.Error("the block of another provider was sent")
	}
}

func textUsageDeltas(t *testing.T, w Wire) {
	const text = "Grüß Gott, 世界!"
	s := Start(t, Text(text), Text(text))
	var streamed strings.Builder
	var r model.Reply
	for range 2 {
		streamed.Reset()
		r = w.ask(t, s, model.Request{}, hello(), llms.WithStreamingFunc(func(_ context.Context, b []byte) error {
			streamed.Write(b)
			return nil
		}))
	}
	if r.Text != text || streamed.String() != text || r.Stop == "" {
		t.Errorf("got %+v, streamed %q", r, streamed.String())
	}
	input, cached := r.Counts[model.KeyInput], r.Counts[model.KeyCached]
	if _, reasoning := r.Counts[model.KeyReasoning]; input == 0 || cached == 0 || cached > input || r.Counts[model.KeyOutput] == 0 || reasoning {
		t.Errorf("usage %+v", r.Counts)
	}
	broken := errors.New("the watcher left")
	_, err := w.open(t, Start(t, Text(text))).GenerateContent(t.Context(), hello(), llms.WithStreamingFunc(func(context.Context, []byte) error { return broken }))
	if !errors.Is(err, broken) {
		t.Errorf("a watcher's error became %v", err)
	}
}

func interleaved(t *testing.T, w Wire) {
	want := []Call{{ID: "a", Name: "read_file", Args: `{"path":"a.go"}`}, {ID: "b", Name: "big", Args: `{"n": 12345678901234567890}`}, {ID: "c", Name: "none", Args: ""}}
	var got []Call
	for _, c := range w.ask(t, Start(t, Calls(want...)), model.Request{}, hello()).Calls {
		if c.Arguments == "{}" {
			c.Arguments = "" // how Anthropic's wire begins every call
		}
		got = append(got, Call{ID: c.ID, Name: c.Name, Args: c.Arguments})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func thinking(t *testing.T, w Wire) {
	pieces := []Piece{{Thinking: "let me "}, {Thinking: "see <1>"}}
	if w.Signs {
		pieces = append(pieces, Piece{Signature: "sig+/="}, Piece{Redacted: "hidden=="})
	}
	s := Start(t, Calls(Call{"a", "f", `{"x":1}`}).After(append(pieces, Piece{Text: "I look."})...), Text("Done."))
	var thought string
	r := w.ask(t, s, model.Request{}, hello(), toolF, llms.WithStreamingReasoningFunc(func(_ context.Context, b, _ []byte) error {
		thought += string(b)
		return nil
	}))
	if r.Text != "I look." || r.Thinking != "let me see <1>" || thought != r.Thinking {
		t.Errorf("got %+v, streamed %q", r, thought)
	}
	if r.Opaque == "" || !json.Valid([]byte(r.Opaque)) {
		t.Fatalf("the block is %q", r.Opaque)
	}
	w.ask(t, s, model.Request{Opaque: map[int]string{2: r.Opaque}, Prompt: 2}, append(hello(), said(r)...), toolF)
	body := string(s.Requests()[1].Body)
	want := []string{"let me see <1>"}
	if w.Signs {
		want = append(want, `{"type":"thinking","thinking":"let me see <1>","signature":"sig+/="}`, `"hidden=="`)
	}
	for _, part := range want {
		if !strings.Contains(body, part) {
			t.Errorf("%s did not go back: %s", part, body)
		}
	}
	if at, text := strings.Index(body, "let me see"), strings.Index(body, "I look."); w.Signs && at > text {
		t.Error("the thinking follows the text")
	}
}

func parallelResults(t *testing.T, w Wire) {
	calls := make([]Call, 24)
	for i := range calls {
		calls[i] = Call{string(rune('a' + i)), "f", "{}"}
	}
	s := Start(t, Calls(calls...), Calls(Call{"z", "f", "{}"}), Text("Done."))
	messages := hello()
	for range 2 {
		messages = append(messages, said(w.ask(t, s, model.Request{Prompt: 2}, messages, toolF))...)
	}
	failed := map[int]bool{len(messages) - 1: true}
	read := w.ask(t, s, model.Request{Prompt: 2, Failed: failed}, messages, toolF).Counts
	body := string(s.Requests()[2].Body)
	for _, call := range append(calls, Call{ID: "z"}) {
		if !strings.Contains(body, `"result of `+call.ID+`"`) {
			t.Errorf("the result of %s is missing", call.ID)
		}
	}
	// The second request wrote everything before the newest turn to the cache.
	if read[model.KeyCached] < read[model.KeyInput]*8/10 {
		t.Errorf("read %d of %d tokens from the cache", read[model.KeyCached], read[model.KeyInput])
	}
}

func oddAnswers(t *testing.T, w Wire) {
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		answer     Answer
		text, args string
	}{
		"nothing":             {Answer{Usage: true}, "", ""},
		"no usage":            {Answer{Say: []Piece{{Text: "hi"}}}, "hi", ""},
		"a line of a MB":      {Answer{Say: []Piece{{Text: long}}}, long, ""},
		"arguments of a MB":   {oneCall("f", `{"x":"`+long+`"}`), "", `{"x":"` + long + `"}`},
		"invalid arguments":   {oneCall("f", `{"x": nonsense`), "", `{"x": nonsense`},
		"arguments no object": {oneCall("f", `[1]`), "", `[1]`},
		"cut by the limit":    {Answer{Say: []Piece{{Text: "half"}, {Finish: "length"}}}, "half", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, c.answer, Text("on"))
			got := w.ask(t, s, model.Request{}, hello())
			if got.Text != c.text {
				t.Errorf("got %.40q", got.Text)
			}
			if c.args != "" && got.Calls[0].Arguments != c.args {
				t.Errorf("arguments %.40q", got.Calls[0].Arguments)
			}
			// Whatever it was, the provider takes it back.
			w.ask(t, s, model.Request{Prompt: 2}, append(append(hello(), said(got)...), llms.TextParts(llms.ChatMessageTypeHuman, "go on")))
		})
	}
}

// oneCall answers with one call; its arguments come in one piece.
func oneCall(name, args string) Answer {
	return Answer{Usage: true, Say: []Piece{{Call: &CallPiece{ID: "a", Name: name}}, {Call: &CallPiece{Args: args}}, {Finish: "tool_calls"}}}
}

func toolChoice(t *testing.T, w Wire) {
	for given, want := range map[string][]string{
		`"auto"`:     {`"tool_choice":"auto"`, `"tool_choice":{"type":"auto"}`},
		`"none"`:     {`"tool_choice":"none"`, `"tool_choice":{"type":"none"}`},
		`"required"`: {`"tool_choice":"required"`, `"tool_choice":{"type":"any"}`},
		`"any"`:      {`"tool_choice":"required"`, `"tool_choice":{"type":"any"}`},
		`"f"`:        {`"tool_choice":{"function":{"name":"f"},"type":"function"}`, `"tool_choice":{"name":"f","type":"tool"}`},
		`{"type":"function","function":{"name":"f"}}`: {`"tool_choice":{"function":{"name":"f"},"type":"function"}`, `"tool_choice":{"name":"f","type":"tool"}`},
	} {
		s := Start(t, Text("hi"))
		w.ask(t, s, model.Request{Params: protocol.JSON(`{"tool_choice":` + given + `}`)}, hello(), toolF)
		if body := string(s.Requests()[0].Body); !strings.Contains(body, want[0]) && !strings.Contains(body, want[1]) {
			t.Errorf("%s was sent as %s", given, body)
		}
	}
}

// paramsAsMeant sends the params of definitions without and with texts that look like decimals.
func paramsAsMeant(t *testing.T, w Wire) {
	const params = `{"logit":{"a/b":"0.5","c":["1.0","x","7"]},"stop":["1.5"],"temperature":"0.70","top_p":"1"}`
	for _, c := range []struct {
		texts []string
		want  []string
	}{
		{nil, []string{`"logit":{"a/b":0.5,"c":[1.0,"x","7"]}`, `"stop":[1.5]`, `"temperature":0.70`, `"top_p":1`}},
		{[]string{"/logit/a~1b", "/logit/c/0", "/stop/0"}, []string{`"logit":{"a/b":"0.5","c":["1.0","x","7"]}`, `"stop":["1.5"]`, `"temperature":0.70`, `"top_p":1`}},
	} {
		s := Start(t, Text("hi"))
		w.ask(t, s, model.Request{Params: protocol.JSON(params), ParamsTexts: c.texts}, hello())
		for _, want := range c.want {
			if body := string(s.Requests()[0].Body); !strings.Contains(body, want) {
				t.Errorf("with the texts %q %s is not in %s", c.texts, want, body)
			}
		}
	}
	for _, wrong := range []string{`{"tool_choice":5}`, `{"model":"x"}`} {
		_, err := w.open(t, Start(t)).GenerateContent(model.WithRequest(t.Context(), model.Request{Params: protocol.JSON(wrong)}), hello())
		if err == nil || strings.Contains(err.Error(), "json:") || strings.Contains(err.Error(), "Go ") || !strings.Contains(err.Error(), "params: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// reservedParams holds that each member of a request which no param asked for is one that a param cannot be, or may replace.
func reservedParams(t *testing.T, w Wire) {
	s := Start(t, Text("hi"))
	w.ask(t, s, model.Request{CacheKey: "key", Prompt: 2}, hello(), toolF)
	var body map[string]json.RawMessage
	if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	for name := range body {
		_, reserved := protocol.ReservedParams[name]
		_, err := w.open(t, Start(t, Text("hi"))).GenerateContent(model.WithRequest(t.Context(), model.Request{Params: protocol.JSON(`{"` + name + `":1}`)}), hello(), toolF)
		if refused := err != nil; refused != reserved {
			t.Errorf("%s: reserved is %v, and as a param it gives %v", name, reserved, err)
		}
	}
}

func prefix(t *testing.T, w Wire) {
	const visits = 12
	var answers []Answer
	for range visits {
		answers = append(answers, Text("An answer of some words."))
	}
	s := Start(t, answers...)
	messages := hello()
	var before int64
	for k := 1; k <= visits; k++ {
		r := w.ask(t, s, model.Request{Prompt: len(messages), Visit: k}, messages, toolF)
		if cached := r.Counts[model.KeyCached]; k >= 2 && cached < before-2 {
			t.Errorf("visit %d read %d tokens from the cache, visit %d had %d", k, cached, k-1, before)
		}
		before = r.Counts[model.KeyInput]
		messages = append(messages, llms.TextParts(llms.ChatMessageTypeAI, r.Text), llms.TextParts(llms.ChatMessageTypeHuman, strings.Repeat("And now? ", k)))
	}
}

func noListener(t *testing.T, w Wire) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for name, base := range map[string]string{"refused": "http://" + l.Addr().String() + "/v1", "no such host": "http://model.invalid/v1"} {
		m, err := w.At(base)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.GenerateContent(t.Context(), hello())
		if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// manyCalls has answers with as many calls as one may have, one more, and very many.
func manyCalls(t *testing.T, w Wire) {
	many := 400_000
	if testing.Short() { // as with the race detector, which takes ten times as long to make them
		many = 40_000
	}
	for _, n := range []int{model.MostCalls - 1, model.MostCalls, model.MostCalls + 1, many} {
		var say []Piece
		for i := range n {
			say = append(say, Piece{Call: &CallPiece{Index: i, ID: "c" + strconv.Itoa(i), Name: "f"}})
		}
		s := Start(t, Answer{Usage: true, Say: append(say, Piece{Finish: "tool_calls"})})
		began := worked(t)
		res, err := w.open(t, s).GenerateContent(t.Context(), hello(), toolF)
		took := worked(t) - began
		if n <= model.MostCalls {
			if err != nil || model.CallsOf(res) != n {
				t.Errorf("%d calls: %v", n, err)
			}
			continue
		}
		if failed, ok := errors.AsType[*model.Error](err); !ok || failed.Class != model.Invalid || !strings.Contains(err.Error(), "calls more than 128 tools") {
			t.Errorf("%d calls: %v", n, err)
		}
		if took > 20*time.Second {
			t.Errorf("%d calls took %v", n, took)
		}
	}
}

// worked is the processor time that the process has used: of what takes too long on a busy machine too.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// manyPieces has a call whose arguments come byte by byte.
func manyPieces(t *testing.T, w Wire) {
	n := 200_000
	if testing.Short() {
		n = 20_000
	}
	say := []Piece{{Call: &CallPiece{ID: "a", Name: "f"}}, {Call: &CallPiece{Args: `"`}}}
	for range n {
		say = append(say, Piece{Call: &CallPiece{Args: "x"}})
	}
	s := Start(t, Answer{Usage: true, Say: append(say, Piece{Call: &CallPiece{Args: `"`}}, Piece{Finish: "tool_calls"})})
	began := worked(t)
	r := w.ask(t, s, model.Request{}, hello(), toolF)
	if len(r.Calls) != 1 || len(r.Calls[0].Arguments) != n+2 {
		t.Errorf("%d calls", len(r.Calls))
	}
	if took := worked(t) - began; took > 20*time.Second {
		t.Errorf("%d pieces took %v", n, took)
	}
}
