package engine_test

import (
	"context"
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
)

// What a person pastes by mistake is hidden before it is stored.
func TestAKeyInAnAnswerIsHidden(t *testing.T) {
	t.Setenv("HOUSE", "correct horse battery")
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: ask
secrets: [HOUSE]
roles:
  gate: {ask: "Which?"}
outputs: {said: "${{ steps.gate.output.text }}"}
`, nil)
	if v.Status != protocol.Waiting {
		t.Fatal(v.Status)
	}
	key := "npm_" + strings.Repeat("aZ3kQ9xB7mT1", 3)
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Text: "use " + key + " or correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	if v = b.drive(id); string(v.Outputs) != `{"said":"use [redacted:npm_token] or [secret:HOUSE]"}` {
		t.Errorf("outputs %s", v.Outputs)
	}
	for e, err := range b.e.Store.After(context.Background(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Raw), key) || strings.Contains(string(e.Raw), "horse") {
			t.Errorf("event %d (%s) holds a secret", e.Seq, e.Type)
		}
	}
}
