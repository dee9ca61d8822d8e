package query

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// Turns are the turns of people in the conversation of a run, oldest first.
func Turns(ctx context.Context, e *engine.Engine, run protocol.RunID) ([]api.Turn, error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	t := turner{subflows: subflowsOf(s), text: func(x protocol.Text) (string, error) {
		if !x.Link.Defined() {
			return x.S, nil
		}
		b, err := protocol.ReadPayload(ctx, e.Store, x.Link)
		return string(b), err
	}, asked: map[string]*asked{}}
	for x, err := range e.Store.After(ctx, run, 0) {
		if err == nil {
			err = t.event(&x)
		}
		if err != nil {
			return nil, fmt.Errorf("the turns of run %s: %w", run, err)
		}
	}
	t.append(t.inbox)
	return t.turns, nil
}

// A turner goes through the events of a run.
type turner struct {
	text  func(protocol.Text) (string, error)
	turns []api.Turn
	asked map[string]*asked // by step
	inbox []message

	subflows map[string]bool // roles
}

// asking are the events of a visit that does nothing but ask.
var asking = map[protocol.EventType]bool{protocol.EvWaiting: true, protocol.EvAnswered: true, protocol.EvReminded: true, protocol.EvEscalated: true}

// asked is a visit that waits for an answer.
type asked struct {
	begun protocol.Seq // when the visit began last
	alone bool         // nothing has acted since
	kind  protocol.WaitKind
}

type message struct {
	seq  protocol.Seq
	text string
}

func (t *turner) event(x *protocol.Entry) error {
	step := x.StepName()
	if step != "" {
		for other, a := range t.asked {
			a.alone = a.alone && other == step && asking[x.Type]
		}
	}
	switch x.Type {
	case protocol.EvStepStarted:
		d, err := cas.DecodeData[protocol.StepStarted](&x.Event)
		if err != nil {
			return err
		}
		part := t.part(step)
		t.asked[step] = &asked{begun: x.Seq, alone: !part}
		for i := range t.turns {
			if part {
				t.turns[i].Failed = "the sub-workflow " + step + " has acted since, and records its files by itself"
			}
		}
		return t.heard(d.Messages)
	case protocol.EvWaiting:
		d, err := cas.DecodeData[protocol.WaitingFor](&x.Event)
		if a := t.asked[step]; a != nil {
			a.kind = d.Kind
		}
		return err
	case protocol.EvMessage:
		d, err := cas.DecodeData[protocol.MessageIn](&x.Event)
		if err != nil {
			return err
		}
		text, err := t.text(d.Text)
		t.inbox = append(t.inbox, message{x.Seq, text})
		return err
	case protocol.EvAnswered:
		d, err := cas.DecodeData[protocol.Answered](&x.Event)
		if err != nil {
			return err
		}
		return t.answered(x, step, d)
	case protocol.EvStepCompleted:
		if n := len(t.turns); n > 0 && t.turns[n-1].Step != step {
			t.turns[n-1].Ended = append(t.turns[n-1].Ended, step)
		}
		delete(t.asked, step)
	case protocol.EvForked:
		d, err := cas.DecodeData[protocol.Forked](&x.Event)
		if err != nil {
			return err
		}
		_, err = t.take(d.Messages)
		return err
	case protocol.EvFilesAt:
		d, err := cas.DecodeData[protocol.FilesAt](&x.Event)
		if err != nil || d.Phase != protocol.FilesBefore {
			return err
		}
		for i := len(t.turns) - 1; i >= 0 && t.turns[i].Tree == "" && t.turns[i].Failed == ""; i-- {
			t.turns[i].Tree, t.turns[i].Failed = d.Tree, d.Why
		}
	}
	return nil
}

// answered adds a turn. What is allowed or denied is none.
func (t *turner) answered(x *protocol.Entry, step string, d protocol.Answered) error {
	said, err := t.take(d.Messages)
	if err != nil {
		return err
	}
	a := t.asked[step]
	if a == nil || a.kind == protocol.WaitApproval {
		return nil
	}
	turn := api.Turn{Step: step, Said: x.Seq, At: x.Seq - 1, Time: Stamp(x.TS), Part: t.part(step)}
	if a.kind == protocol.WaitQuestion && a.alone {
		turn.At = a.begun - 1 // it is asked anew, and its time begins anew
	}
	var texts []string
	for _, m := range said {
		texts = append(texts, m.text)
		if m.seq <= turn.At {
			turn.Messages++
		}
	}
	if turn.Text = strings.Join(texts, "\n\n"); len(said) == 0 {
		if turn.Text, err = t.written(d); err != nil {
			return err
		}
	}
	t.turns = append(t.turns, turn)
	return nil
}

// part reports whether a step is a sub-workflow.
func (t *turner) part(step string) bool {
	id, err := protocol.ParseStepID(step)
	return err == nil && t.subflows[id.Role]
}

// subflowsOf are the roles of a run that are sub-workflows.
func subflowsOf(s *rules.State) map[string]bool {
	out := map[string]bool{}
	for i := range s.Program().Workflow.Roles {
		if r := &s.Program().Workflow.Roles[i]; r.Action == protocol.ActWorkflow {
			out[r.Name] = true
		}
	}
	return out
}

// written is an answer as it can be written again.
func (t *turner) written(d protocol.Answered) (string, error) {
	text, err := t.text(d.Text)
	if err != nil {
		return "", err
	}
	text = strings.TrimPrefix(text, rules.Attributed(d.Source, ""))
	fields, err := t.text(d.Fields)
	if err != nil {
		return "", err
	}
	var lines []string
	if d.Choice != "" {
		lines = append(lines, d.Choice)
	}
	if text != "" {
		lines = append(lines, text)
	}
	var values map[string]any
	if fields != "" && json.Unmarshal([]byte(fields), &values) == nil {
		var list []string
		for name, v := range values {
			if s, ok := v.(string); ok {
				list = append(list, name+"="+s)
			} else if b, err := json.Marshal(v); err == nil {
				list = append(list, name+"="+string(b))
			}
		}
		slices.Sort(list)
		lines = append(lines, list...)
	}
	return strings.Join(lines, "\n"), nil
}

// heard adds what an agent that was interrupted heard to what was said before.
func (t *turner) heard(n int) error {
	said, err := t.take(n)
	t.append(said)
	return err
}

// append has the last turn say what was said behind it, and was no answer.
func (t *turner) append(said []message) {
	if len(t.turns) == 0 {
		return
	}
	last := &t.turns[len(t.turns)-1]
	for _, m := range said {
		if m.seq > last.Said {
			last.Text = strings.TrimPrefix(last.Text+"\n\n"+m.text, "\n\n")
		}
	}
}

// take takes the oldest n messages that wait.
func (t *turner) take(n int) ([]message, error) {
	if n < 0 || n > len(t.inbox) {
		return nil, fmt.Errorf("%d messages are read, %d waited: %w", n, len(t.inbox), protocol.ErrCorrupt)
	}
	out := t.inbox[:n]
	t.inbox = t.inbox[n:]
	return out, nil
}
