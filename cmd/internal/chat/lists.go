package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// How many chats are listed, of how many runs at most, and in how many events of a chat its first message is
// looked for.
const (
	chatsMax    = 100
	runsMax     = 200
	titleEvents = 20
)

// sessions lists the chats of the store, the one that moved last first.
func (s *session) sessions(ctx context.Context) (Outcome, error) {
	p, err := s.at.Service.List(ctx, api.Query{Limit: runsMax})
	if err != nil {
		return Outcome{}, err
	}
	l := &List{Title: "Chats", Hint: "choose · Enter goes there", Do: Sessions}
	for _, r := range p.Items {
		if len(l.Rows) == chatsMax {
			break
		}
		row, ok, err := s.chat(ctx, r)
		switch {
		case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted): // meanwhile
		case err != nil:
			return Outcome{}, err
		case ok:
			l.Rows = append(l.Rows, row)
		}
	}
	if n := len(p.Unread); n > 0 {
		l.Title += fmt.Sprintf(", and %s that cannot be read (wf ls names them)", protocol.Plural(n, "run"))
	}
	return Outcome{List: l}, nil
}

// chat is a run in the list of chats: its age, what it cost, what was said first, its state and id. ok is false where it
// is none.
func (s *session) chat(ctx context.Context, r api.Row) (row Row, ok bool, err error) {
	v, err := s.at.Service.Run(ctx, r.ID, api.Window{Limit: 1})
	if err != nil || v.Info.Type != protocol.ChatType && r.ID != s.run() {
		return row, false, err
	}
	title, err := s.title(ctx, r)
	if v.Info.ForkedFrom != nil {
		title = "fork: " + title
	}
	text := fmt.Sprintf("%4s  %8s  %s · %s · %s", render.Age(string(r.Updated)), cmp.Or(spent(r.Usage.Input+r.Usage.Output > 0, r.CostUSD), "–"), title,
		render.State{Status: r.Status, Idle: r.Idle, Closing: r.Closing}.Word(), r.ID)
	return Row{Value: string(r.ID), Text: text, Current: r.ID == s.run()}, true, err
}

// title is what was said first in a chat, behind the name of its workflow where that is another one than that of wf.
func (s *session) title(ctx context.Context, r api.Row) (title string, err error) {
	err = s.at.Follower.Follow(ctx, r.ID, api.Following{To: min(r.Seq, titleEvents)}, func(u api.Update) error {
		switch d := u.Data.(type) {
		case protocol.Answered:
			title = cmp.Or(title, d.Text.S)
		case protocol.MessageIn:
			title = cmp.Or(title, d.Text.S)
		}
		return nil
	})
	if r.Title != protocol.ChatType {
		title = r.Title + ": " + title
	}
	return plain.Line(plain.Text(cmp.Or(title, "nothing was said yet")), 60), err
}

// spent is a cost in dollars; "" where no call has told what it used.
func spent(used bool, usd *float64) string {
	switch {
	case !used:
		return ""
	case usd == nil:
		return Unpriced
	case *usd > 0 && *usd < 0.0001:
		return "<$0.0001"
	case *usd > 0 && *usd < 0.01:
		return fmt.Sprintf("$%.4f", *usd)
	}
	return fmt.Sprintf("$%.2f", *usd)
}

func (s *session) Spent(ctx context.Context) (string, error) {
	v, err := s.at.Service.Run(ctx, s.run(), api.Window{Limit: 1})
	if err != nil {
		return "", err
	}
	return spent(v.Usage.Input != nil || v.Usage.Output != nil, v.CostUSD), nil
}

// take goes over to another chat, and goes on with it where that is possible.
func (s *session) take(ctx context.Context, run protocol.RunID) (Outcome, error) {
	word := ""
	if s.at.TakeUp != nil {
		var err error
		if run, word, err = s.at.TakeUp(ctx, run); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{Moved: true, Text: word}, s.goTo(ctx, run)
}

// models lists the models that are known where the run is, and marks the one in use.
func (s *session) models(ctx context.Context) (Outcome, error) {
	l := &List{Title: "Model from here on, in a fork of this chat", Hint: "choose · Enter takes it", Do: Model, Own: true}
	if s.at.Models != nil {
		var err error
		if l.Rows, err = s.at.Models(ctx); err != nil {
			return Outcome{}, err
		}
	}
	now := s.Info().Model
	for i := range l.Rows {
		if l.Rows[i].Current = l.Rows[i].Value == now; l.Rows[i].Current {
			l.At = i
			return Outcome{List: l}, nil
		}
	}
	if now != "" {
		l.Rows = append([]Row{{Value: now, Text: now, Current: true}}, l.Rows...)
	}
	return Outcome{List: l}, nil
}
