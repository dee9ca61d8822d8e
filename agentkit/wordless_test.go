package agentkit

import (
	"errors"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/protocol"
)

// TestF111AnAnswerWithoutRoomIsNotCorrected: where reasoning takes all tokens of an answer, the attempt ends and says which key to raise:
// the same request again would be paid for and give the same.
func TestF111AnAnswerWithoutRoomIsNotCorrected(t *testing.T) {
	thought := modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Thinking: "hm, hm"}, {Signature: "s"}, {Finish: "length"}}}
	for name, c := range map[string]struct {
		answer modeltest.Answer
		params string
		schema bool
		want   []string
	}{
		"a thought":              {thought, "", true, []string{"reasoning took all of them", "Raise max_tokens in the params of the role coder"}},
		"a role without output":  {thought, `{"max_tokens":9}`, false, []string{"reasoning took all of them", "Raise max_tokens"}},
		"by another key":         {thought, `{"max_completion_tokens":9}`, true, []string{"Raise max_completion_tokens"}},
		"without a thought":      {said("", "length"), "", true, []string{"said nothing within the", "Raise max_tokens"}},
		"blanks behind, no more": {said(" \n", "length"), "", true, []string{"said nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, server := answering(t, c.answer, said("---\nstatus: done\n---\n", "stop"))
			if s.turn.Role.Params = c.params; !c.schema {
				s.turn.History.Schema = ""
			}
			j := &journal{}
			_, err := s.perform(t, j)
			var f *protocol.Failure
			if !errors.As(err, &f) || f.Code != "max_tokens" || f.Class != "invalid_output" || !f.Keeps || len(server.Requests()) != 1 {
				t.Fatalf("%v after %d requests", err, len(server.Requests()))
			}
			for _, word := range c.want {
				if !strings.Contains(f.Message, word) {
					t.Errorf("%q is not in %s", word, f.Message)
				}
			}
			if u := find[protocol.Usage](j); len(u) != 1 || u[0].Output == nil || u[0].Stop != protocol.StopLength || len(find[protocol.Correction](j)) > 0 {
				t.Errorf("the journal tells %v", j.types())
			}
			// With more room it goes on from there.
			if err := j.emit(t.Context(), protocol.AttemptFailed{Attempt: 1, Error: f.ErrorInfo, Keeps: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.perform(t, j); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestF111AFullWindowIsNoAnswer: what gives way to a summary then is the older part; without one the cause is the window.
func TestF111AFullWindowIsNoAnswer(t *testing.T) {
	full := modeltest.Answer{Usage: true, End: true, Say: []modeltest.Piece{{Text: "Half an ans"}}, Events: []string{
		`{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`}}
	s, server := answering(t, full)
	s.turn.History.Schema = ""
	j := &journal{}
	_, err := s.perform(t, j)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Code != "context_full" || !strings.Contains(f.Message, "the answer did not fit into the rest") ||
		!strings.Contains(f.Message, "window was full before its answer had ended") || len(server.Requests()) != 1 {
		t.Fatalf("%v after %d requests", err, len(server.Requests()))
	}
	u := find[protocol.Usage](j)
	if len(u) != 1 || u[0].Stop != protocol.StopOverflow || u[0].Input == nil || u[0].Window != *u[0].Input+7 || len(find[protocol.TextSaid](j)) > 0 {
		t.Errorf("the journal tells %+v", u)
	}

	call := func(id string, n string) modeltest.Answer {
		return modeltest.Calls(modeltest.Call{ID: id, Name: "read", Args: `{"n":` + n + `}`})
	}
	server = modeltest.Start(t, call("a", "3000"), call("b", "200"), full, modeltest.Text("Done."))
	st := working(t, 1, "coder#1: [{text: unused}]")
	st.turn.Models = []string{"anthropic/x"}
	st.agent.Models = overWire(t, 1, server, wires["anthropic"]).agent.Models
	j = &journal{}
	c, err := st.perform(t, j)
	if err != nil || *c.Text != "Done." || len(find[protocol.Compacted](j)) != 1 {
		t.Fatalf("%v, %v", err, j.types())
	}
}

// TestF111AReplyWithoutAWordForAnUnknownReason is a failure of the server, which is asked again.
func TestF111AReplyWithoutAWordForAnUnknownReason(t *testing.T) {
	odd := modeltest.Answer{Usage: true, End: true, Events: []string{`{"type":"message_delta","delta":{"stop_reason":"of_later"}}`, `{"type":"message_stop"}`}}
	s, server := answering(t, odd, said("---\nstatus: done\n---\n", "stop"))
	j := &journal{}
	if _, err := s.perform(t, j); err != nil || len(server.Requests()) != 2 || len(find[protocol.Correction](j)) > 0 {
		t.Errorf("%v after %d requests, %v", err, len(server.Requests()), j.types())
	}
}
