package roles

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wf/protocol"
)

// emitted collects what a performer says.
type emitted []protocol.Data

func (e *emitted) emit(_ context.Context, data ...protocol.Data) error {
	*e = append(*e, data...)
	return nil
}

var gate = protocol.Role{
	Name: "gate", Action: protocol.ActAsk,
	Choices: []protocol.Choice{{Label: "Try again", Value: "retry", Primary: true}, {Label: "Give up", Value: "stop"}},
}

func gateTurn(role protocol.Role) protocol.Turn {
	return protocol.Turn{Step: protocol.StepID{Role: role.Name, N: 1, Index: -1}, Role: role, Question: "What now?"}
}

func answered(a protocol.Answered) []protocol.AnswerTo { return []protocol.AnswerTo{{Answer: a}} }

func TestAskParksTheRun(t *testing.T) {
	var got emitted
	_, err := Ask{}.Perform(t.Context(), gateTurn(gate), got.emit)
	if !errors.Is(err, protocol.ErrWaiting) {
		t.Fatalf("have %v, want ErrWaiting", err)
	}
	want := emitted{protocol.WaitingFor{Kind: protocol.WaitChoice, Question: protocol.NewText("What now?"), Choices: gate.Choices}}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(protocol.Link{})); d != "" {
		t.Error(d)
	}
}

func TestAskDoesNotAskTwiceAfterACrash(t *testing.T) {
	turn := gateTurn(gate)
	turn.Transcript = []protocol.Entry{{Event: protocol.Event{Type: protocol.EvWaiting}}}
	var got emitted
	if _, err := (Ask{}).Perform(t.Context(), turn, got.emit); !errors.Is(err, protocol.ErrWaiting) || len(got) > 0 {
		t.Fatalf("have %v and %v, want ErrWaiting alone", err, got)
	}
}

func TestAskConcludesWithTheAnswer(t *testing.T) {
	form := protocol.Role{Name: "gate", Form: `{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`}
	for _, test := range []struct {
		name   string
		role   protocol.Role
		answer protocol.Answered
		data   string
		text   string
		again  string // why it is asked again
	}{
		{"a choice and a text", gate, protocol.Answered{Choice: "retry", Text: protocol.NewText("look at Split")}, `{"choice":"retry","text":"look at Split"}`, "look at Split", ""},
		{"a choice alone", gate, protocol.Answered{Choice: "stop"}, `{"choice":"stop","text":""}`, "", ""},
		{"a label instead of a text", gate, protocol.Answered{Text: protocol.NewText("give up")}, `{"choice":"stop","text":""}`, "", ""},
		{"no such choice", gate, protocol.Answered{Choice: "later"}, "", "", `choice "later" is none of retry, stop`},
		{"a text without a choice", gate, protocol.Answered{Text: protocol.NewText("hm")}, "", "", `none of retry, stop`},
		{"a free answer", protocol.Role{Name: "gate"}, protocol.Answered{Text: protocol.NewText("Postgres")}, `{"choice":"","text":"Postgres"}`, "Postgres", ""},
		{"a form", form, protocol.Answered{Fields: protocol.NewText(`{"n":3}`)}, `{"choice":"","n":3,"text":""}`, "", ""},
		{"a wrong field", form, protocol.Answered{Fields: protocol.NewText(`{"n":"x"}`)}, "", "", `/n: `},
		{"a missing field", form, protocol.Answered{}, "", "", `'n'`},
		{"fields where there is no form", gate, protocol.Answered{Choice: "stop", Fields: protocol.NewText(`{"n":3}`)}, "", "", "no form"},
	} {
		t.Run(test.name, func(t *testing.T) {
			turn := gateTurn(test.role)
			turn.Answers = answered(test.answer)
			var got emitted
			c, err := Ask{}.Perform(t.Context(), turn, got.emit)
			if test.again != "" {
				if !errors.Is(err, protocol.ErrWaiting) || len(got) != 1 {
					t.Fatalf("have %v and %v, want to be asked again", err, got)
				}
				if q := got[0].(protocol.WaitingFor).Question.S; !strings.Contains(q, test.again) || !strings.HasSuffix(q, "What now?") {
					t.Errorf("question %q does not tell %q", q, test.again)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(c.Data) != test.data {
				t.Errorf("data %s, want %s", c.Data, test.data)
			}
			if text := textOf(c); text != test.text {
				t.Errorf("text %q, want %q", text, test.text)
			}
		})
	}
}

func textOf(c protocol.Conclusion) string {
	if c.Text == nil {
		return ""
	}
	return *c.Text
}

func TestWaitTellsWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, test := range []struct {
			name string
			wait protocol.Wait
			want protocol.WaitingFor
		}{
			{"for a time", protocol.Wait{For: "1h30m"}, protocol.WaitingFor{Kind: protocol.WaitTimer, Due: now.Add(90 * time.Minute).UnixMicro()}},
			{"until a time", protocol.Wait{Until: "2031-02-03T04:05:06Z"}, protocol.WaitingFor{Kind: protocol.WaitTimer, Due: 1927857906000000}},
			{"for a signal", protocol.Wait{Signal: "deployed"}, protocol.WaitingFor{Kind: protocol.WaitSignal, Question: protocol.NewText("deployed")}},
		} {
			var got emitted
			_, err := Wait{}.Perform(t.Context(), protocol.Turn{Wait: test.wait}, got.emit)
			if !errors.Is(err, protocol.ErrWaiting) {
				t.Fatalf("%s: have %v, want ErrWaiting", test.name, err)
			}
			if d := cmp.Diff(emitted{test.want}, got, cmpopts.EquateComparable(protocol.Link{})); d != "" {
				t.Errorf("%s: %s", test.name, d)
			}
		}
	})
}

func TestWaitKeepsItsDueTimeAfterACrash(t *testing.T) {
	var got emitted
	turn := protocol.Turn{
		Wait:       protocol.Wait{For: "1h"},
		Transcript: []protocol.Entry{{Event: protocol.Event{Type: protocol.EvWaiting}}},
	}
	if _, err := (Wait{}).Perform(t.Context(), turn, got.emit); !errors.Is(err, protocol.ErrWaiting) || len(got) > 0 {
		t.Fatalf("have %v and %v: the timer was set anew", err, got)
	}
}

func TestWaitEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		wait protocol.Wait
		how  protocol.AnswerTo
		want string
	}{
		{"when its time has come", protocol.Wait{For: "1h"}, protocol.AnswerTo{Fired: true}, `{"fired":true}`},
		{"before, by an answer", protocol.Wait{For: "1h"}, protocol.AnswerTo{Answer: protocol.Answered{Text: protocol.NewText("go")}}, `{"fired":false,"text":"go"}`},
		{"by its signal, with fields", protocol.Wait{Signal: "s"}, protocol.AnswerTo{Answer: protocol.Answered{Fields: protocol.NewText(`{"sha":"abc"}`)}}, `{"sha":"abc","text":""}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Wait{}.Perform(t.Context(), protocol.Turn{Wait: test.wait, Answers: []protocol.AnswerTo{test.how}}, nil)
			if err != nil || string(c.Data) != test.want {
				t.Errorf("have %s, %v; want %s", c.Data, err, test.want)
			}
		})
	}
}

func TestWaitRefusesWhatIsNoTime(t *testing.T) {
	for _, wait := range []protocol.Wait{{For: "soon"}, {For: "-1s"}, {For: ""}, {Until: "tomorrow"},
		{For: "2500000h"}, {Until: "9999-12-31T23:59:59Z"}, {Until: "2256-01-01T00:00:00Z"}, {Until: "1970-01-01T00:00:00Z"}, {Until: "0001-01-01T00:00:00Z"}} {
		_, err := Wait{}.Perform(t.Context(), protocol.Turn{Wait: wait}, nil)
		var f *protocol.Failure
		if !errors.As(err, &f) || f.Phase != "expression" || f.Code != "invalid_time" {
			t.Errorf("%+v: have %v, want a failure of phase expression", wait, err)
		}
	}
}

func TestSetConcludesWithItsValues(t *testing.T) {
	c, err := Set{}.Perform(t.Context(), protocol.Turn{Values: protocol.JSON(`{"a":1}`)}, nil)
	if err != nil || string(c.Data) != `{"a":1}` {
		t.Errorf("have %s, %v", c.Data, err)
	}
	if _, err := (Set{}).Perform(t.Context(), protocol.Turn{}, nil); err == nil {
		t.Error("no values, yet a conclusion")
	}
}
