package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"wf/protocol"
)

// Wait performs wait roles: for a time, until a time, or for a signal. The run is parked; the
// process may end meanwhile, since a timer is only a due time in the journal.
//
// A wait concludes {fired}: whether the time came; an answer ends it before, and adds {text}.
// A signal concludes {text} and the fields that came with it. No conclusion tells when.
type Wait struct {
	Now func() time.Time // nil is time.Now
}

// Perform parks, or concludes when the timer has fired or an answer is there. A time or a
// duration that cannot be read is a Failure of phase expression.
func (w Wait) Perform(ctx context.Context, turn protocol.Turn, emit Emit) (protocol.Conclusion, error) {
	if n := len(turn.Answers); n > 0 {
		return waited(turn.Wait, turn.Answers[n-1])
	}
	waiting := protocol.WaitingFor{Kind: protocol.WaitTimer}
	switch {
	case turn.Wait.Signal != "":
		waiting.Kind, waiting.Question = protocol.WaitSignal, protocol.NewText(turn.Wait.Signal)
	case parked(turn): // its due time is in the journal
	default:
		due, err := w.due(turn.Wait)
		if err != nil {
			return protocol.Conclusion{}, err
		}
		if waiting.Due = due.UnixMicro(); waiting.Due <= 0 || waiting.Due > protocol.MaxSafeInt {
			return protocol.Conclusion{}, badTime("%q ends outside of the years 1970 to 2255: a wait ends within them", cmp.Or(turn.Wait.Until, turn.Wait.For))
		}
	}
	return park(ctx, turn, emit, waiting)
}

// due is when the wait ends.
func (w Wait) due(wait protocol.Wait) (time.Time, error) {
	if wait.Until != "" {
		at, err := time.Parse(time.RFC3339, wait.Until)
		if err != nil {
			return time.Time{}, badTime("until: %q is no RFC 3339 time, such as 2030-01-31T09:00:00Z", wait.Until)
		}
		return at, nil
	}
	d, err := time.ParseDuration(wait.For)
	if err != nil || d < 0 {
		return time.Time{}, badTime("for: %q is no duration, such as 90s or 1h30m", wait.For)
	}
	now := time.Now
	if w.Now != nil {
		now = w.Now
	}
	return now().Add(d), nil
}

func badTime(format, value string) error {
	return failure("expression", "invalid_time", "invalid_time", format, value)
}

// waited is what a wait concludes.
func waited(wait protocol.Wait, a protocol.AnswerTo) (protocol.Conclusion, error) {
	data := map[string]any{}
	if wait.Signal == "" {
		data["fired"] = a.Fired
	}
	if a.Fired {
		return protocol.Conclusion{Data: object(data)}, nil
	}
	if fields := a.Answer.Fields.S; fields != "" {
		got, err := decodeObject(fields)
		if err != nil {
			return protocol.Conclusion{}, fmt.Errorf("fields of the answer: %w", err)
		}
		for name, value := range got {
			if _, taken := data[name]; !taken {
				data[name] = value
			}
		}
	}
	text := a.Answer.Text.S
	data["text"] = text
	c := protocol.Conclusion{Data: object(data)}
	if text != "" {
		c.Text = &text
	}
	return c, nil
}

// Set performs set roles: its values are the conclusion.
type Set struct{}

// Perform concludes with the values of the turn.
func (Set) Perform(_ context.Context, turn protocol.Turn, _ Emit) (protocol.Conclusion, error) {
	if len(turn.Values) == 0 {
		return protocol.Conclusion{}, errors.New("set: the turn holds no values")
	}
	return protocol.Conclusion{Data: turn.Values}, nil
}
