package session

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// Command carries out what a person asked for by a slash.
func (s *Session) Command(ctx context.Context, c chat.Command) (chat.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	service, run := s.at.Service, s.run()
	switch c.Action {
	case chat.Interrupt:
		return chat.Outcome{Text: "interrupted; /resume goes on"}, service.Suspend(ctx, run)
	case chat.Resume:
		r, err := resume(c.Arg)
		if err != nil {
			return chat.Outcome{}, err
		}
		return chat.Outcome{Text: "going on"}, service.Resume(ctx, run, r)
	case chat.Compact:
		return chat.Outcome{Text: "the next answer begins with a summary of the conversation"}, service.Compact(ctx, run)
	case chat.Fork:
		return s.fork(ctx, c.Arg, "")
	case chat.Model:
		if c.Arg == "" {
			return chat.Outcome{Text: "the model is " + cmp.Or(s.Info().Model, "that of the roles") + "; /model NAME takes another one from here on"}, nil
		}
		return s.fork(ctx, "", c.Arg)
	case chat.Cost:
		return s.cost(ctx, "task", "role", "model")
	case chat.Reset:
		return s.reset(ctx)
	case chat.Memories:
		return s.memories(ctx, c.Arg)
	case chat.Dump:
		return s.dump(ctx, c.Arg)
	}
	return chat.Outcome{}, protocol.ErrUsage.With("", "%s is nothing that can be done here", c.Action)
}

// resume reads the limit that a run goes on with: cost_usd=50, or none.
func resume(arg string) (r api.Resume, err error) {
	if arg == "" {
		return r, nil
	}
	name, value, ok := strings.Cut(arg, "=")
	if !ok {
		return r, protocol.ErrUsage.With("", "/resume %s: want a limit, as in /resume cost_usd=50", arg)
	}
	text, err := json.Marshal(value)
	r.Limits = map[string]json.RawMessage{name: text}
	return r, err
}

// fork goes over to a run that shares this one up to a step, or to its newest answer.
func (s *Session) fork(ctx context.Context, step, model string) (chat.Outcome, error) {
	if step == "" {
		v, err := s.at.Service.Run(ctx, s.run(), api.Window{})
		if err != nil {
			return chat.Outcome{}, err
		}
		for _, x := range v.Steps {
			if x.CID != nil {
				step = x.ID
			}
		}
		if step == "" {
			return chat.Outcome{}, protocol.ErrUsage.With("", "nothing was concluded yet that a fork could share")
		}
	}
	f := api.Fork{Step: step, After: true}
	if model != "" {
		f.Models = map[string]api.ModelList{"": {model}}
	}
	made, err := s.at.Service.Fork(ctx, s.run(), f)
	if err != nil {
		return chat.Outcome{}, err
	}
	return chat.Outcome{Moved: true}, s.goTo(ctx, made.ID)
}

// cost is wf cost as text, by one thing after the other.
func (s *Session) cost(ctx context.Context, by ...string) (chat.Outcome, error) {
	var tables []string
	for _, group := range by {
		c, err := s.at.Service.Cost(ctx, s.run(), group)
		if err != nil {
			return chat.Outcome{}, err
		}
		tables = append(tables, render.CostText(c, group))
	}
	return chat.Outcome{Dialog: true, Wide: true, Title: "Tokens and cost of run " + string(s.run()), Text: strings.Join(tables, "\n")}, nil
}
