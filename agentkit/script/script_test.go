package script_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/script"
)

func open(t *testing.T, text string) *script.Model {
	t.Helper()
	file := filepath.Join(t.TempDir(), "replies.yaml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := script.Open("script/replies.yaml", file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(ctx context.Context, m *script.Model, role string, visit, call int, item ...int) (*llms.ContentResponse, error) {
	r := model.Request{Role: role, Visit: visit, Call: call}
	if len(item) > 0 {
		r.Item = &item[0]
	}
	return m.GenerateContent(model.WithRequest(ctx, r), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "eight by")})
}

func TestRepliesAreFoundByVisitItemAndCall(t *testing.T) {
	m := open(t, `
coder#1: [{text: one}, {text: two, usage: {input: 10, cached: 7, output: 3}}]
coder#2: [{text: three}]
coder#1[1]: [{text: four}]
`)
	for want, r := range map[string]func() (*llms.ContentResponse, error){
		"one":   func() (*llms.ContentResponse, error) { return ask(t.Context(), m, "coder", 1, 0) },
		"two":   func() (*llms.ContentResponse, error) { return ask(t.Context(), m, "coder", 1, 1) },
		"three": func() (*llms.ContentResponse, error) { return ask(t.Context(), m, "coder", 2, 0) },
		"four":  func() (*llms.ContentResponse, error) { return ask(t.Context(), m, "coder", 1, 0, 1) },
	} {
		got, err := r()
		if err != nil || got.Choices[0].Content != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
	r, _ := ask(t.Context(), m, "coder", 1, 1)
	if u := model.UsageOf(r); *u.Input != 10 || *u.Cached != 7 || *u.Output != 3 || u.Reasoning != nil {
		t.Errorf("usage %+v", u)
	}
	r, _ = ask(t.Context(), m, "coder", 1, 0)
	if u := model.UsageOf(r); *u.Input != 2 || *u.Output != 1 || u.Cached != nil {
		t.Errorf("usage by bytes %+v", u)
	}
}

func TestAnUnmatchedCallIsNamed(t *testing.T) {
	m := open(t, `coder#1: [{text: one}]`)
	for want, err := range map[string]error{
		"no reply for coder#1, call 2: the script holds 1 for it":                second(ask(t.Context(), m, "coder", 1, 1)),
		"no reply for coder#2, call 1: the script holds replies for coder#1":     second(ask(t.Context(), m, "coder", 2, 0)),
		"no reply for tester#1[3], call 1: the script holds replies for coder#1": second(ask(t.Context(), m, "tester", 1, 0, 3)),
		"the context names none": second(m.GenerateContent(t.Context(), nil)),
	} {
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func second(_ *llms.ContentResponse, err error) error { return err }

func TestCallsErrorsAndDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, `
coder#1:
  - {tool: read_file, args: {path: main.go, n: 3}, text: "I look."}
  - {tools: [{tool: a}, {tool: b, args: "{broken"}]}
  - {error: {status: 429, retry_after: 2s, message: slow down}}
  - {text: late, delay: 3h, thinking: hm}
`)
		r, err := ask(t.Context(), m, "coder", 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Choices[0]; c.Content != "I look." || c.ToolCalls[0].ID != "call_1_1" || c.ToolCalls[0].FunctionCall.Arguments != `{"n":3,"path":"main.go"}` {
			t.Errorf("got %+v", c)
		}
		r, err = ask(t.Context(), m, "coder", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Choices[0].ToolCalls; len(c) != 2 || c[0].FunctionCall.Arguments != "{}" || c[1].FunctionCall.Arguments != "{broken" {
			t.Errorf("got %+v", c)
		}
		_, err = ask(t.Context(), m, "coder", 1, 2)
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.RateLimit || e.RetryAfter != 2*time.Second || !strings.Contains(err.Error(), "slow down") {
			t.Errorf("got %v", err)
		}
		start := time.Now()
		if r, err := ask(t.Context(), m, "coder", 1, 3); err != nil || r.Choices[0].ReasoningContent != "hm" || time.Since(start) != 3*time.Hour {
			t.Errorf("got %v, %v after %v", r, err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := ask(ctx, m, "coder", 1, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFaultyScriptsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"coder: [{text: a}]":                    `"coder" is no step id`,
		"coder#1: {text: a}":                    "not a script",
		"coder#1: [{txt: a}]":                   `unknown field "txt"`,
		"coder#1: [{}]":                         "coder#1, reply 1: it has neither text nor tool nor error",
		"coder#1: [{text: a}, {tools: [{}]}]":   "coder#1, reply 2: call 1 names no tool",
		"coder#1: [{text: a, delay: long}]":     "delay",
		"a: [":                                  "not YAML",
		"coder#1: [{error: {retry_after: no}}]": "retry_after",
	} {
		if _, err := script.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	_, err := script.Open("script/none.yaml", filepath.Join(t.TempDir(), "none.yaml"))
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Unavailable || !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

// A workflow names the file, and one that came from elsewhere may name anything.
func TestAScriptIsAFileWithAnEnd(t *testing.T) {
	for _, odd := range []string{"/dev/zero", t.TempDir()} {
		if _, err := script.Open("script/x", odd); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", odd, err)
		}
	}
}
