package tape_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/agentkit/tape"
	"wf/protocol"
)

func ask(t *testing.T, m llms.Model, r model.Request, texts ...string) (*llms.ContentResponse, string, error) {
	t.Helper()
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be brief.")}
	for _, text := range texts {
		messages = append(messages, llms.TextParts(llms.ChatMessageTypeHuman, text))
	}
	var seen strings.Builder
	res, err := m.GenerateContent(model.WithRequest(t.Context(), r), messages,
		llms.WithStreamingFunc(func(_ context.Context, b []byte) error { seen.Write(b); return nil }),
		llms.WithStreamingReasoningFunc(func(_ context.Context, b, _ []byte) error { seen.Write(b); return nil }))
	return res, seen.String(), err
}

// What was recorded is replayed: answers with their usage, thinking and calls, and failures.
func TestTrafficIsReplayedAsItWas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	s := modeltest.Start(t,
		modeltest.Answer{Status: 529, Header: map[string]string{"Retry-After": "3"}, Body: `{"error":{"message":"busy"}}`},
		modeltest.Calls(modeltest.Call{ID: "a", Name: "f", Args: `{"n":12345678901234567890}`}).After(modeltest.Piece{Thinking: "hm"}, modeltest.Piece{Signature: "s"}, modeltest.Piece{Text: "I look."}),
		modeltest.Text("Done."))
	live, err := anthropic.New("anthropic/x", "x", anthropic.Config{BaseURL: s.Root})
	if err != nil {
		t.Fatal(err)
	}
	r := record(t, file)
	recording := r.Wrap("anthropic/x", live)
	at := func(call int) model.Request {
		return model.Request{Role: "coder", Visit: 1, Call: call, Params: protocol.JSON(`{"max_tokens":5}`), CacheKey: "of this run"}
	}
	type outcome struct {
		Choice *llms.ContentChoice
		Seen   string
		Failed string
		After  time.Duration
	}
	run := func(m llms.Model) []outcome {
		var out []outcome
		for call, texts := range [][]string{{"go"}, {"go"}, {"go", "on"}} {
			res, seen, err := ask(t, m, at(call), texts...)
			o := outcome{Seen: seen}
			if e := (*model.Error)(nil); errors.As(err, &e) {
				o.Failed, o.After = e.Error(), e.RetryAfter
			} else {
				o.Choice = res.Choices[0]
				delete(o.Choice.GenerationInfo, model.KeyTTFE)
				delete(o.Choice.GenerationInfo, model.KeyThinkingMS)
			}
			out = append(out, o)
		}
		return out
	}
	want := run(recording)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := tape.Open("tape/calls.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, run(m)); d != "" {
		t.Error(d)
	}
	// Another process that goes on in the middle gets the right one of two equal requests.
	m, err = tape.Open("tape/calls.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	if res, _, err := ask(t, m, at(1), "go"); err != nil || res.Choices[0].Content != "I look." {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestAChangedPromptIsALoudMiss(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	s := modeltest.Start(t, modeltest.Text("one"), modeltest.Text("two"))
	live, err := anthropic.New("anthropic/x", "x", anthropic.Config{BaseURL: s.Root})
	if err != nil {
		t.Fatal(err)
	}
	r := record(t, file)
	for visit, text := range []string{"the first line\nthe second line\nthe third line", "something else"} {
		if _, _, err := ask(t, r.Wrap("anthropic/x", live), model.Request{Role: "coder", Visit: visit + 1}, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := tape.Open("tape/calls.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = ask(t, m, model.Request{Role: "coder", Visit: 1}, "the first line\nthe 2nd line\nthe third line")
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Unavailable {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"call 1 of coder#1", "line 1", "message 1", "-the second line", "+the 2nd line", "--record"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q is not in %s", want, e)
		}
	}
	_, _, err = ask(t, m, model.Request{Role: "coder", Visit: 1, Params: protocol.JSON(`{"seed":1}`)}, "the first line\nthe second line\nthe third line")
	if err == nil || !strings.Contains(err.Error(), "params") {
		t.Errorf("other params: got %v", err)
	}
}

func TestARecordingThatWasCutOffIsGoodUpToItsLastLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	for text, want := range map[string]string{
		"{\"v\":1,\"key\":\"k\",\"reply\":{\"text\":\"x\"}}\n{\"v\":1,\"ke": "",
		"nonsense\n":                "line 1",
		"{\"v\":2,\"reply\":{}}\n":  "version 1",
		"{\"v\":1,\"key\":\"k\"}\n": "no call",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := tape.Open("tape/x", file)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if _, err := tape.Open("tape/x", file+".missing"); err == nil {
		t.Error("a missing file was opened")
	}
}

// The block of a provider is replayed to the agent without the key that stood in it, and the
// request that gives it back is found again.
func TestABlockWithAKeyIsRecordedWithoutIt(t *testing.T) {
	token := "ghp_" + strings.Repeat("aZ3kQ9xB7mT1", 3)
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	s := modeltest.Start(t, modeltest.Calls(modeltest.Call{ID: "a", Name: "f", Args: "{}"}).After(modeltest.Piece{Thinking: token}, modeltest.Piece{Signature: "s"}), modeltest.Text("done"))
	live, err := anthropic.New("anthropic/x", "x", anthropic.Config{BaseURL: s.Root})
	if err != nil {
		t.Fatal(err)
	}
	r := record(t, file)
	run := func(m llms.Model) {
		t.Helper()
		conversation := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "go")}
		res, err := m.GenerateContent(t.Context(), conversation)
		if err != nil {
			t.Fatal(err)
		}
		c := res.Choices[0]
		conversation = append(conversation,
			llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{c.ToolCalls[0]}},
			llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "a", Name: "f", Content: "r"}}})
		ctx := model.WithRequest(t.Context(), model.Request{Opaque: map[int]string{1: model.ReplyOf(res).Opaque}})
		if res, err = m.GenerateContent(ctx, conversation); err != nil || res.Choices[0].Content != "done" {
			t.Fatalf("got %v, %v", res, err)
		}
	}
	run(r.Wrap("anthropic/x", live))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), token[:20]) {
		t.Errorf("the recording is %s, %v", b, err)
	}
	m, err := tape.Open("tape/calls.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	run(m)
}

// A workflow names the file, and one that came from elsewhere may name anything.
func TestATapeIsAFileWithAnEnd(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	if err := errors.Join(os.WriteFile(long, nil, 0o600), os.Truncate(long, 1<<40)); err != nil {
		t.Fatal(err)
	}
	for odd, why := range map[string]string{"/dev/zero": "not a regular file", long: "has more than"} {
		if _, err := tape.Open("tape/x", odd); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", odd, err)
		}
	}
}

func record(t *testing.T, path string) *tape.Recorder {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return tape.Record(f)
}
