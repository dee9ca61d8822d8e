package roles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/protocol"
	"wf/roles/frontmatter"
)

// Ask performs ask roles: a person is asked, and the run is parked until an answer comes.
//
// The conclusion holds {choice, text} and the fields of the form; the text of the answer is
// its text. An answer that fits neither the choices nor the form is asked for again, with
// the reason in front of the question, until the same time.
//
// A question that was not answered in time concludes with the choice that the role names for that, or is a
// Failure of class timeout; a further attempt of it asks anew.
type Ask struct {
	Now func() time.Time // nil is time.Now
}

// Perform asks, or concludes with the newest answer of the attempt. Without an answer the error
// wraps protocol.ErrWaiting.
func (r Ask) Perform(ctx context.Context, turn protocol.Turn, emit Emit) (protocol.Conclusion, error) {
	question, role := turn.Question, turn.Role
	if role.ChoicesOf != "" {
		role.Choices = turn.Choices
	}
	last := newest(turn)
	if last != nil {
		c, err := concluded(role, *last)
		if err == nil || last.Fired {
			return c, err
		}
		question = fmt.Sprintf("The answer before does not fit: %v\n\n%s", err, question)
	}
	waiting := protocol.WaitingFor{
		Kind:     protocol.WaitQuestion,
		Question: protocol.NewText(question),
		Choices:  role.Choices,
		Form:     protocol.NewText(protocol.OrderedForm(turn.Role.Form, turn.Fields)),
	}
	if len(role.Choices) > 0 {
		waiting.Kind = protocol.WaitChoice
	}
	if a := role.Asking; a != nil && last == nil {
		now := r.now().UnixMicro()
		if a.Timeout > 0 {
			waiting.Due = now + a.Timeout
		}
		waiting.Remind, waiting.Assignees = a.RemindAt(now), a.Assignees
	} else if last != nil {
		waiting.Due, waiting.Remind, waiting.Assignees = last.Waiting.Due, last.Waiting.Remind, last.Waiting.Assignees
	}
	return park(ctx, turn, emit, waiting)
}

func (r Ask) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// newest is the newest answer of the attempt; nil where there is none.
func newest(turn protocol.Turn) *protocol.AnswerTo {
	n := len(turn.Answers)
	if n == 0 {
		return nil
	}
	for _, e := range slices.Backward(turn.Transcript) {
		switch e.Type {
		case protocol.EvAnswered, protocol.EvTimerFired:
			return &turn.Answers[n-1]
		case protocol.EvAttemptFailed:
			return nil
		}
	}
	return &turn.Answers[n-1]
}

// concluded is what the role concludes with an answer, or with its absence at the time that it was waited for.
func concluded(role protocol.Role, a protocol.AnswerTo) (protocol.Conclusion, error) {
	if !a.Fired {
		return AnswerOf(role, a.Answer)
	}
	late := failure("ask", "timeout", "timeout", "no answer came in time")
	if role.Asking == nil || role.Asking.OnTimeout == "" {
		return protocol.Conclusion{}, late
	}
	c, err := AnswerOf(role, protocol.Answered{Choice: role.Asking.OnTimeout})
	if err != nil {
		late.Message += fmt.Sprintf(", and on_timeout does not fit the question: %v", err)
		return protocol.Conclusion{}, late
	}
	return c, nil
}

// AnswerOf is what an ask role concludes with an answer. An answer that fits neither the
// choices nor the form is an error that says why; a server can so refuse one
// before it is stored. A text that is the value or the label of a choice chooses it.
func AnswerOf(role protocol.Role, answer protocol.Answered) (protocol.Conclusion, error) {
	choice, text := answer.Choice, answer.Text.S
	if choice == "" {
		if c, ok := ChoiceNamed(role.Choices, text); ok {
			choice, text = c.Value, ""
		}
	}
	if len(role.Choices) > 0 {
		c, ok := ChoiceNamed(role.Choices, choice)
		if choice == "" {
			return protocol.Conclusion{}, fmt.Errorf("it chooses none of %s", choiceValues(role.Choices))
		}
		if !ok {
			return protocol.Conclusion{}, fmt.Errorf("choice %q is none of %s", choice, choiceValues(role.Choices))
		}
		choice = c.Value
	}
	data, err := formFields(role.Form, answer.Fields.S)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	data["choice"], data["text"] = choice, text
	c := protocol.Conclusion{Data: object(data)}
	if text != "" {
		c.Text = &text
	}
	return c, nil
}

// formFields are the fields of a form, checked. A role without a form takes none.
func formFields(form, fields string) (map[string]any, error) {
	if form == "" {
		if fields != "" && fields != "{}" {
			return nil, fmt.Errorf("the question has no form, so it takes no fields")
		}
		return map[string]any{}, nil
	}
	fields = cmp.Or(fields, "{}")
	got, err := decodeObject(fields)
	if err != nil {
		return nil, fmt.Errorf("form: the fields are no JSON object: %w", err)
	}
	if wrong := frontmatter.Validate(protocol.JSON(fields), form); len(wrong) > 0 {
		return nil, fmt.Errorf("form: %s", violations(wrong))
	}
	return got, nil
}

// ChoiceNamed finds a choice by its value, else by its label whatever its case.
func ChoiceNamed(choices []protocol.Choice, name string) (protocol.Choice, bool) {
	for _, c := range choices {
		if c.Value == name {
			return c, true
		}
	}
	for _, c := range choices {
		if strings.EqualFold(c.Label, strings.TrimSpace(name)) {
			return c, true
		}
	}
	return protocol.Choice{}, false
}

func choiceValues(choices []protocol.Choice) string {
	values := make([]string, len(choices))
	for i, c := range choices {
		values[i] = c.Value
	}
	return strings.Join(values, ", ")
}

// park emits what the visit waits for, unless a run of the same visit did so before it was cut
// off, and returns ErrWaiting.
func park(ctx context.Context, turn protocol.Turn, emit Emit, waiting protocol.WaitingFor) (protocol.Conclusion, error) {
	if !parked(turn) {
		if err := emit(ctx, waiting); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	return protocol.Conclusion{}, fmt.Errorf("%s: %w", turn.Step, protocol.ErrWaiting)
}

// parked reports whether the visit has asked and got no answer yet.
func parked(turn protocol.Turn) bool {
	asked := 0
	for _, e := range turn.Transcript {
		if e.Type == protocol.EvWaiting {
			asked++
		}
	}
	return asked > len(turn.Answers)
}

// object writes data that consists of what JSON can hold.
func object(data map[string]any) protocol.JSON {
	out, err := protocol.CanonicalJSON(data)
	if err != nil {
		panic("roles: data that came from JSON is no JSON: " + err.Error())
	}
	return out
}
