package roles

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// A form that is asked again, since its answer did not fit, is due when it was.
func TestAFormThatIsAskedAgainKeepsItsTimes(t *testing.T) {
	at := time.UnixMicro(1_000)
	first := protocol.WaitingFor{Kind: protocol.WaitQuestion, Due: 500, Remind: []int64{200, 300}, Assignees: []string{"anna", "ben"}}
	turn := protocol.Turn{Question: "How many?", Role: protocol.Role{Name: "ask", Action: protocol.ActAsk,
		Form:   `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`,
		Asking: &protocol.Asking{Timeout: 9_000, Remind: []int64{50}, Assignees: []string{"anna"}}}}
	ask := func() (asked protocol.WaitingFor) {
		t.Helper()
		_, err := Ask{Now: func() time.Time { return at }}.Perform(t.Context(), turn, func(_ context.Context, data ...protocol.Data) error {
			asked = data[0].(protocol.WaitingFor)
			return nil
		})
		if !errors.Is(err, protocol.ErrWaiting) {
			t.Fatal(err)
		}
		return asked
	}
	fresh := ask()
	if fresh.Due != 10_000 || !cmp.Equal(fresh.Remind, []int64{1_050}) || !cmp.Equal(fresh.Assignees, []string{"anna"}) {
		t.Errorf("asked: %+v", fresh)
	}
	turn.Answers = []protocol.AnswerTo{{Waiting: first, Answer: protocol.Answered{Fields: protocol.NewText(`{"n":"x"}`)}}}
	turn.Transcript = []protocol.Entry{{Event: protocol.Event{Type: protocol.EvWaiting}}, {Event: protocol.Event{Type: protocol.EvAnswered}}}
	again := ask()
	if again.Due != first.Due || !cmp.Equal(again.Remind, first.Remind) || !cmp.Equal(again.Assignees, first.Assignees) {
		t.Errorf("asked again: %+v", again)
	}
	turn.Answers[0].Fired = true
	var f *protocol.Failure
	if _, err := (Ask{}).Perform(t.Context(), turn, nil); !errors.As(err, &f) || f.Class != "timeout" {
		t.Errorf("when its time is over: %v", err)
	}
	turn.Transcript = append(turn.Transcript, protocol.Entry{Event: protocol.Event{Type: protocol.EvAttemptFailed}})
	if anew := ask(); anew.Due != fresh.Due {
		t.Errorf("a further attempt: %+v", anew)
	}
}

func TestAChoiceThatIsNotOfferedCannotCountByItself(t *testing.T) {
	role := protocol.Role{Choices: []protocol.Choice{{Value: "a"}}, Asking: &protocol.Asking{OnTimeout: "b"}}
	var f *protocol.Failure
	if _, err := concluded(role, protocol.AnswerTo{Fired: true}); !errors.As(err, &f) || f.Code != "timeout" {
		t.Errorf("%v", err)
	}
	role.Asking.OnTimeout = "a"
	if c, err := concluded(role, protocol.AnswerTo{Fired: true}); err != nil || string(c.Data) != `{"choice":"a","text":""}` {
		t.Errorf("%s %v", c.Data, err)
	}
}
