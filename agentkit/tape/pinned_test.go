package tape_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/model"
	"wf/agentkit/tape"
	"wf/protocol"
)

// A tape of version 1 of the file is replayed for ever: a failure, an answer with thinking, text and a
// call, and a plain one. Its keys are digests of the requests, so requests that are written otherwise miss.
func TestATapeOfVersion1IsReplayed(t *testing.T) {
	m, err := tape.Open("tape/1.jsonl", "../../testdata/tapes/1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	at := func(call int) model.Request {
		return model.Request{Role: "coder", Visit: 1, Call: call, Params: protocol.JSON(`{"max_tokens":5}`)}
	}
	_, _, err = ask(t, m, at(0), "go")
	var busy *model.Error
	if !errors.As(err, &busy) || busy.Status != 529 || busy.RetryAfter != 3*time.Second {
		t.Errorf("the first call: %v", err)
	}
	res, seen, err := ask(t, m, at(1), "go")
	if err != nil {
		t.Fatal(err)
	}
	c := res.Choices[0]
	if len(c.ToolCalls) != 1 {
		t.Fatalf("%d calls", len(c.ToolCalls))
	}
	call := c.ToolCalls[0]
	got := []string{c.Content, seen, call.ID, call.FunctionCall.Name, call.FunctionCall.Arguments}
	if d := cmp.Diff([]string{"I look.", "hmI look.", "a", "f", `{"n":12345678901234567890}`}, got); d != "" {
		t.Error(d)
	}
	if res, _, err := ask(t, m, at(2), "go", "on"); err != nil || res.Choices[0].Content != "Done." {
		t.Errorf("the third call: %v, %v", res, err)
	}
}
