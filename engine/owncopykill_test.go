package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// onceOnly is what can be done once in a copy: a second time mv finds nothing to move, and a line is there twice.
const onceOnly = `for i in $(seq 60); do mv d/f$i d/g$i && echo $i >> log || exit 1; done; mv d e && sed -i s/a/b/ alone`

// A process that is killed at any moment changes nothing of what a fan-out of commands concludes: each begins in its copy anew.
func TestF506AKilledFanOutHasTheSameCIDs(t *testing.T) {
	if drivenToBeKilled(t, nil) {
		return
	}
	fans := 12
	switch {
	case os.Getenv("WF_LONG") != "":
		fans = 60
	case testing.Short():
		fans = 3
	}
	begin := func() (*bench, protocol.RunID) {
		b := newOwnBench(t)
		main := map[string]string{"alone": "a\n", "log": ""}
		for i := range 61 {
			main[fmt.Sprint("d/f", i)] = "x"
		}
		b.lay(main)
		p := b.load(coders)
		raw, err := p.Inputs(map[string]any{"items": []any{onceOnly, onceOnly, "rm log && mv alone other"}})
		if err != nil {
			t.Fatal(err)
		}
		id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(coders), Inputs: raw, Workspace: b.dir})
		if err != nil {
			t.Fatal(err)
		}
		return b, id
	}
	concluded := func(b *bench, id protocol.RunID) (out []string) {
		v := b.view(id)
		b.done(v)
		for _, s := range v.Steps {
			out = append(out, fmt.Sprint(s.ID, " ", s.Status, " ", *s.CID))
		}
		return out
	}
	b, id := begin()
	b.drive(id)
	want := concluded(b, id)
	kills := 0
	for range fans {
		b, id := begin()
		moment := func() func() bool { // some time after the first copy is whole
			n := rand.IntN(150)
			return func() bool {
				if found(b.e.Copies, "*/*/ready", 1)() {
					n--
				}
				return n < 0
			}
		}
		kills += b.killedAt(id, moment(), moment(), moment())
		if d := cmp.Diff(want, concluded(b, id)); d != "" {
			t.Errorf("a run that was killed %d times: %s", kills, d)
		}
		b.sound(id)
	}
	if kills < fans/2 {
		t.Errorf("%d kills of %d fan-outs", kills, fans)
	}
}

// An agent whose attempt failed and keeps nothing begins its further attempt in a copy anew; one that keeps what it did goes on in its copy.
func TestF506AnAgentBeginsAnewInACopyAnew(t *testing.T) {
	for keeps, want := range map[bool]string{false: "one", true: "one two"} {
		b := newOwnBench(t)
		b.lay(map[string]string{"a": "one"})
		b.e.Performers[protocol.ActPrompt] = performerFunc(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
			text, err := os.ReadFile(filepath.Join(turn.Workspace, "a"))
			if out := string(text); err != nil || turn.Attempt == 2 {
				return protocol.Conclusion{Text: &out}, err
			}
			err = emit(ctx, protocol.ToolCall{Call: "1", Name: "write_file"})
			return protocol.Conclusion{}, errors.Join(err, os.WriteFile(filepath.Join(turn.Workspace, "a"), []byte("one two"), 0o644),
				&protocol.Failure{Class: "timeout", Keeps: keeps, ErrorInfo: protocol.ErrorInfo{Code: "timeout", Message: "too long"}})
		})
		_, v := b.run(`
wf: 1
name: agent
limits: {cost_usd: 1, duration: 1h}
roles:
  coder: {prompt: You code., tools: [write_file], model: a/b, workspace: own, retry: {attempts: 2, delay: 1ms}}
  merge: {merge: {of: coder}}
edges: [{from: START, to: coder}, {from: coder, to: merge}, {from: merge, to: END}]
`, nil)
		b.done(v)
		if got := b.tree()["a"]; got != want {
			t.Errorf("keeps %v: the second attempt left %q", keeps, got)
		}
	}
}
