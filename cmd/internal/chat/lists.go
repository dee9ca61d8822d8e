package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// How many chats are read at a time, how many of these at once, and in how many events of a chat its first or newest message is
// looked for.
const (
	chatsPage   = 50
	chatsAtOnce = 8
	titleEvents = 30
)

// sessions lists the chats of the store, the one that moved last first.
func (s *session) sessions(ctx context.Context) (Outcome, error) {
	first, err := s.chats(ctx, "", "")
	if err != nil {
		return Outcome{}, err
	}
	l := &List{Title: "Chats", Hint: "choose · Enter goes there", Do: Sessions, Rows: first.Rows, Next: first.Next, Find: s.chats}
	if first.Note != "" {
		l.Title += ", " + first.Note
	}
	return Outcome{List: l}, nil
}

// chats reads the chats behind a place of the list, or the newest ones that a filter finds: by the words that were said in them, or by
// what a list is searched for otherwise.
func (s *session) chats(ctx context.Context, filter, from string) (Found, error) {
	p, err := s.at.Service.List(ctx, api.Query{Type: protocol.ChatType, Text: filter, Limit: chatsPage, Before: from})
	if err != nil {
		return Found{}, err
	}
	var out Found
	items := p.Items
	if _, err := api.ReadSearch(filter); filter != "" && err == nil {
		said, err := s.at.Service.List(ctx, api.Query{Type: protocol.ChatType, Search: filter, Limit: chatsPage})
		if err != nil {
			return Found{}, err
		}
		for _, r := range said.Items {
			if !slices.ContainsFunc(items, func(x api.Row) bool { return x.ID == r.ID }) {
				items = append(items, r)
			}
		}
		slices.SortStableFunc(items, func(a, b api.Row) int { return strings.Compare(b.Updated, a.Updated) })
		if x := said.Searched; x != nil && x.Behind > 0 {
			out.Note = fmt.Sprintf("what was said in %s is not searched yet", protocol.Plural(x.Behind, "run"))
		}
		if p.Next == nil {
			p.Next = said.Next
		}
	}
	if filter == "" && from == "" && !slices.ContainsFunc(items, s.isHere) { // the run on the screen may be no chat
		here, err := s.at.Service.List(ctx, api.Query{Text: string(s.run()), Limit: 1, All: true})
		if err != nil {
			return Found{}, err
		}
		if len(here.Items) == 1 && s.isHere(here.Items[0]) {
			items = append(here.Items, items...)
		}
	}
	switch {
	case filter == "" && p.Next != nil:
		out.Next = *p.Next
	case p.Next != nil:
		out.Note = cmp.Or(out.Note, "the newest: write more to find others")
	}
	switch {
	case len(p.Missing) > 0:
		out.Note = protocol.Plural(len(p.Missing), "worker") + " did not answer"
	case len(p.Unread) > 0 && filter == "":
		out.Note = protocol.Plural(len(p.Unread), "run") + " cannot be read (wf ls names them)"
	}
	out.Rows, err = s.rows(ctx, items)
	return out, err
}

func (s *session) isHere(r api.Row) bool { return r.ID == s.run() }

// rows are runs in the list of chats.
func (s *session) rows(ctx context.Context, items []api.Row) (out []Row, err error) {
	rows, errs := make([]Row, len(items)), make([]error, len(items))
	room := make(chan struct{}, chatsAtOnce)
	var all sync.WaitGroup
	for i := range items {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			rows[i], errs[i] = s.row(ctx, items[i])
		})
	}
	all.Wait()
	for i, err := range errs {
		switch {
		case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted): // meanwhile
		case err != nil:
			return nil, err
		default:
			out = append(out, rows[i])
		}
	}
	return out, nil
}

// row is a run in the list of chats: its age, what it cost, what was said first, in a fork last, behind the name of its workflow where that is another one
// than that of wf, its state and id, and the workspace where that is another one.
func (s *session) row(ctx context.Context, r api.Row) (Row, error) {
	v, err := s.at.Service.Run(ctx, r.ID, api.Window{Limit: 1})
	if err != nil {
		return Row{}, err
	}
	first, newest := "", ""
	part := api.Following{To: min(r.Seq, titleEvents)}
	fork := v.Info.ForkedFrom != nil
	if fork { // the run that it was forked from has the same first words
		part = api.Following{From: max(0, r.Seq-titleEvents), To: r.Seq}
	}
	err = s.at.Follower.Follow(ctx, r.ID, part, func(u api.Update) error {
		text := ""
		switch d := u.Data.(type) {
		case protocol.Answered:
			if d.Messages == 0 { // else it is made of messages that came before
				text = d.Text.S
			}
		case protocol.MessageIn:
			text = d.Text.S
		}
		first, newest = cmp.Or(first, text), cmp.Or(text, newest)
		return nil
	})
	title := first
	if fork {
		title = newest
	}
	title = plain.Line(plain.Text(cmp.Or(title, "nothing was said yet")), 60)
	if r.Title != protocol.ChatType {
		title = plain.Line(plain.Text(r.Title), 40) + ": " + title
	}
	if fork {
		title = "fork: " + title
	}
	text := fmt.Sprintf("%4s  %8s  %s · %s · %s", render.Age(r.Updated), cmp.Or(spent(r.Usage.Input+r.Usage.Output > 0, r.CostUSD), "–"), title,
		render.State{Status: r.Status, Idle: r.Idle, Closing: r.Closing}.Word(), r.ID)
	here := s.Info()
	if v.Info.Workspace != here.Dir {
		text += " · in " + plain.Line(plain.Text(v.Info.Workspace), 100)
	}
	return Row{Value: string(r.ID), Text: text, Current: r.ID == here.Run}, err
}

// spent is a cost in dollars; "" where no call has reported what it used.
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
