package main

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/daemon"
	"wf/engine/rules"
	"wf/hub/client"
	"wf/protocol"
	"wf/service/compose"
)

// chatSession is a run behind the API of a daemon: the one in this process, or another.
type chatSession struct {
	a     *app
	api   *client.API
	local *daemon.Daemon // nil where the daemon is elsewhere

	mu   sync.Mutex
	run  protocol.RunID
	info chat.Info
}

// chatView is what a chat needs of wf.run/v1.
type chatView struct {
	Workflow string             `json:"workflow"`
	Status   protocol.RunStatus `json:"status"`
	Info     struct {
		Title     string `json:"title"`
		File      string `json:"file"`
		Workspace string `json:"workspace"`
	} `json:"info"`
	Steps []struct {
		ID     string          `json:"id"`
		Action protocol.Action `json:"action"`
		CID    *string         `json:"cid"`
	} `json:"steps"`
}

// learn finds out what the status line shows.
func (s *chatSession) learn(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = chat.Info{Run: s.run, Title: string(s.run), Me: compose.User()}
	if s.local == nil {
		v, err := s.view(ctx)
		if err != nil {
			return err
		}
		s.info.Title, s.info.Dir = v.Info.Title, v.Info.Workspace
		return nil
	}
	st, err := s.local.Service.Engine.State(ctx, s.run)
	if err != nil {
		return err
	}
	s.info.Title, s.info.Dir = st.Info.Title, st.Info.Workspace
	for _, r := range st.Program().Workflow.Roles {
		if r.Action != protocol.ActPrompt {
			continue
		}
		models := rules.Models(st.Info.Models, &r)
		if len(models) == 0 {
			continue
		}
		s.info.Model, s.info.Window = models[0], s.a.Watermark(&r, models[0])
		break
	}
	return nil
}

// Info is what is known from the start.
func (s *chatSession) Info() chat.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *chatSession) current() protocol.RunID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// replay asks for events of the run.
func (s *chatSession) replay(from protocol.Seq) client.Replay {
	r := s.api.Replay(s.current())
	r.Cursor.Seq = from
	return r
}

func wireEvent(e client.Event) protocol.WireEvent {
	return protocol.WireEvent{Seq: e.Seq, CID: e.CID, Prev: e.Prev, TS: e.TS, Type: e.Type, Step: e.Step, Data: e.JSON}
}

// Page reads the n events before a seq.
func (s *chatSession) Page(ctx context.Context, before protocol.Seq, n int) ([]protocol.WireEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	from := max(0, before-1-protocol.Seq(n))
	if before-1 <= from {
		return nil, nil
	}
	var out []protocol.WireEvent
	r := s.replay(from)
	r.Patience, r.To = -1, before-1
	err := r.Follow(ctx, client.Consumer{Event: func(e client.Event) error {
		out = append(out, wireEvent(e))
		return nil
	}})
	return out, err
}

// Tip is the newest seq.
func (s *chatSession) Tip(ctx context.Context) (protocol.Seq, error) {
	return tipOf(ctx, s.api, s.current())
}

// tipOf asks for the newest seq of a run.
func tipOf(ctx context.Context, api *client.API, run protocol.RunID) (tip protocol.Seq, err error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	r := api.Replay(run)
	r.Tail, r.Patience = true, -1
	err = r.Follow(ctx, client.Consumer{Complete: func(c client.Cursor) error {
		tip = c.Seq
		return nil
	}})
	return tip, err
}

// Say answers a step, or queues the words for the next agent.
func (s *chatSession) Say(ctx context.Context, step, text string) error {
	if step != "" {
		return s.act(ctx, "answer", map[string]string{"step": step, "text": text})
	}
	return s.act(ctx, "messages", map[string]string{"source": compose.User(), "text": text})
}

// Choose answers a step with one of its choices.
func (s *chatSession) Choose(ctx context.Context, c chat.Chosen) error {
	return s.act(ctx, "answer", api.Answer{Step: c.Step, Choice: c.Value, Text: c.Text, Shown: c.Shown})
}

// Fill answers a step with the fields it asks for, and one of its choices where it offers some.
func (s *chatSession) Fill(ctx context.Context, step, choice string, fields map[string]any) error {
	answer := map[string]any{"step": step, "fields": fields}
	if choice != "" {
		answer["choice"] = choice
	}
	return s.act(ctx, "answer", answer)
}

func (s *chatSession) act(ctx context.Context, verb string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	_, _, err := s.api.Act(ctx, s.current(), verb, body)
	return err
}

func (s *chatSession) view(ctx context.Context) (v chatView, err error) {
	raw, err := s.api.Run(ctx, s.run)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	return v, err
}

// Command carries out what a person asked for by a slash.
func (s *chatSession) Command(ctx context.Context, c chat.Command) (chat.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	switch c.Action {
	case chat.Interrupt:
		return chat.Outcome{Text: "interrupted; /resume goes on"}, s.act(ctx, "suspend", struct{}{})
	case chat.Resume:
		body := map[string]any{}
		if c.Arg != "" {
			name, value, ok := strings.Cut(c.Arg, "=")
			if !ok {
				return chat.Outcome{}, usagef("/resume %s: want a limit, as in /resume cost_usd=50", c.Arg)
			}
			body["limits"] = map[string]string{name: value}
		}
		return chat.Outcome{Text: "going on"}, s.act(ctx, "resume", body)
	case chat.Compact:
		return chat.Outcome{Text: "the next answer begins with a summary of the conversation"}, s.act(ctx, "compact", struct{}{})
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
	case chat.Memories, chat.Dump:
		return s.memories(ctx, c)
	}
	return chat.Outcome{}, usagef("%s is nothing that can be done here", c.Action)
}

// fork goes over to a run that shares this one up to a step, or to its newest answer.
func (s *chatSession) fork(ctx context.Context, step, model string) (chat.Outcome, error) {
	if step == "" {
		v, err := s.view(ctx)
		if err != nil {
			return chat.Outcome{}, err
		}
		for _, x := range v.Steps {
			if x.CID != nil {
				step = x.ID
			}
		}
		if step == "" {
			return chat.Outcome{}, fail(protocol.ErrUsage, "", "nothing was concluded yet that a fork could share")
		}
	}
	body := map[string]any{"step": step, "after": true}
	if model != "" {
		body["models"] = map[string]string{"": model}
	}
	run, _, err := s.api.Act(ctx, s.current(), "fork", body)
	if err != nil {
		return chat.Outcome{}, err
	}
	return s.goTo(ctx, run)
}

func (s *chatSession) goTo(ctx context.Context, run protocol.RunID) (chat.Outcome, error) {
	s.mu.Lock()
	s.run = run
	s.mu.Unlock()
	return chat.Outcome{Moved: true}, s.learn(ctx)
}
