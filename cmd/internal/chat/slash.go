package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

func (s *session) Command(ctx context.Context, c Command) (Outcome, error) {
	switch c.Action {
	case Resume, Compact, Fork, Model, Undo, Redo, Rewind:
		if err := s.settle(ctx); err != nil {
			return Outcome{}, err
		}
	}
	service, run := s.at.Service, s.run()
	switch c.Action {
	case Undo, Redo, Rewind:
		return s.back(ctx, c)
	case Interrupt:
		err := service.Suspend(ctx, run)
		if errors.Is(err, protocol.ErrRunLive) {
			err = protocol.ErrRunLive.With("", "Esc stops the agent at the process that drives it: on its own screen, or at a wf serve by wf chat --hub (%v)", err)
		}
		return Outcome{Text: "interrupted; /resume goes on"}, err
	case Resume:
		r, err := resume(c.Arg)
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{Text: "going on"}, service.Resume(ctx, run, r)
	case Compact:
		return Outcome{Text: "the next answer begins with a summary of the conversation"}, service.Compact(ctx, run)
	case Fork:
		return s.fork(ctx, c.Arg, "")
	case Model:
		if c.Arg == "" {
			return s.models(ctx)
		}
		return s.fork(ctx, "", c.Arg)
	case Sessions:
		if c.Arg == "" {
			return s.sessions(ctx)
		}
		return s.take(ctx, protocol.RunID(c.Arg))
	case Cost:
		return s.cost(ctx, "task", "role", "model")
	case Reset:
		return s.reset(ctx)
	case Memories, Dump:
		scope, err := s.memory(ctx)
		switch {
		case err != nil:
			return Outcome{}, err
		case scope == "":
			return Outcome{Text: "this agent has no memory; memory: true gives it one"}, nil
		case c.Action == Dump:
			return s.dump(ctx, scope, c.Arg)
		}
		return s.memories(ctx, scope, c.Arg)
	}
	return Outcome{}, protocol.ErrUsage.With("", "%s is nothing that can be done here", c.Action)
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

// fork goes over to a run that shares this one up to a step, or to its newest answer, or, where there is none, up to its first
// step. One of a conversation that was interrupted waits for a word as well.
func (s *session) fork(ctx context.Context, step, model string) (Outcome, error) {
	f := api.Fork{Step: step, After: true}
	if step == "" {
		v, err := s.at.Service.Run(ctx, s.run(), api.Window{})
		if err != nil {
			return Outcome{}, err
		}
		for _, x := range v.Steps {
			if x.CID != nil {
				f.Step = x.ID
			}
		}
		switch {
		case f.Step != "":
		case len(v.Steps) > 0 && model != "":
			f.Step, f.After = v.Steps[0].ID, false
		default:
			return Outcome{}, protocol.ErrUsage.With("", "nothing was concluded yet that a fork could share")
		}
		f.Hold = v.Status == protocol.Suspended
	}
	if model != "" {
		f.Models = map[string]api.ModelList{"": {model}}
	}
	made, err := s.at.Service.Fork(ctx, s.run(), f)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Moved: true}
	if model != "" {
		out.Text = "the model is " + model + " from here on, in run " + string(made.ID)
	}
	if f.Hold {
		out.Text = strings.TrimPrefix(out.Text+"; what you write now is heard with the message that was interrupted", "; ")
	}
	return out, s.goTo(ctx, made.ID)
}

// cost is wf cost as text, by one thing after the other.
func (s *session) cost(ctx context.Context, by ...string) (Outcome, error) {
	var tables []string
	for _, group := range by {
		c, err := s.at.Service.Cost(ctx, s.run(), group)
		if err != nil {
			return Outcome{}, err
		}
		tables = append(tables, render.CostText(c, group))
	}
	return Outcome{Dialog: true, Wide: true, Title: "Tokens and cost of run " + string(s.run()), Text: strings.Join(tables, "\n")}, nil
}

// far is the error of what needs the store of the agent.
var far = protocol.ErrUsage.With("wf memory, where the agent is", "the memories are with the agent: wf memory shows them there")

// memories shows what is remembered, or what a text finds of it.
func (s *session) memories(ctx context.Context, scope, text string) (Outcome, error) {
	found, err := s.found(ctx, scope, text)
	if err != nil {
		return Outcome{}, err
	}
	var b strings.Builder
	for _, x := range found {
		fmt.Fprintf(&b, "%d%s", x.ID, map[bool]string{true: " pinned"}[x.Pinned])
		if len(x.Tags) > 0 {
			b.WriteString(" [" + strings.Join(x.Tags, ", ") + "]")
		}
		if x.Distance != nil {
			fmt.Fprintf(&b, " %.2f away", *x.Distance)
		}
		b.WriteString("\n  " + strings.ReplaceAll(strings.TrimSpace(x.Content), "\n", "\n  ") + "\n\n")
	}
	return Outcome{Dialog: true, Title: "Remembered in " + scope, Text: cmp.Or(b.String(), "nothing")}, nil
}

// remembered is how many memories are shown where no text is asked for.
const remembered = 100

func (s *session) found(ctx context.Context, scope, text string) ([]api.MemoryItem, error) {
	if text != "" {
		got, err := s.at.Service.Recall(ctx, api.Recall{Scope: scope, Text: text})
		if err != nil {
			return nil, err
		}
		return got.Items, nil
	}
	got, err := s.at.Service.Memories(ctx, api.MemoryQuery{Scope: scope, Part: api.Part{Limit: remembered}})
	if err != nil {
		return nil, err
	}
	return got.Items, nil
}

// memory is the scope of the memory of the agent, "" for none.
func (s *session) memory(ctx context.Context) (scope string, err error) {
	if s.at.Near == nil {
		return "", far
	}
	agent, err := s.at.Near.Agent(ctx, s.run())
	return agent.Memory, err
}

// dump writes the memory to a file. One that the person did not name is not written over.
func (s *session) dump(ctx context.Context, scope, name string) (Outcome, error) {
	path := cmp.Or(name, "memories.json")
	if _, err := os.Stat(path); err == nil && name == "" {
		return Outcome{}, protocol.ErrUsage.With("", "%s is there already; /dump PATH writes elsewhere", path)
	}
	return Outcome{Text: "the memories are in " + path}, s.at.Dump(ctx, scope, path)
}

// reset begins the workflow anew.
func (s *session) reset(ctx context.Context) (Outcome, error) {
	if s.at.Near == nil {
		return Outcome{}, protocol.ErrUsage.With("wf chat begins a new one there", "a chat with a daemon elsewhere is not reset from here: /quit, and wf chat begins a new one")
	}
	run, err := s.at.Near.Again(ctx, s.run())
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Moved: true}, s.goTo(ctx, run)
}
