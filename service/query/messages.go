package query

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// Messages builds what a visit was sent first, beside what the visit that it resumes was sent.
// A visit of a role that neither asks a model nor runs a command is an error wrapping
// protocol.ErrUsage.
func Messages(ctx context.Context, e *engine.Engine, run protocol.RunID, step string) (*api.Messages, error) {
	v, err := e.Outline(ctx, run)
	if err != nil {
		return nil, err
	}
	x, err := StepOf(v, step)
	if err != nil {
		return nil, err
	}
	if x.Action != protocol.ActPrompt && x.Action != protocol.ActRun {
		return nil, protocol.ErrUsage.With("", "%s is no agent: nothing is sent to a model (%s)", step, x.Action)
	}
	wanted := []string{step}
	for _, other := range v.Steps {
		if x.Resumes != nil && other.CID != nil && *other.CID == *x.Resumes {
			wanted = append(wanted, other.ID)
		}
	}
	histories, err := e.HistoriesOf(ctx, run, wanted...)
	if err != nil {
		return nil, fmt.Errorf("%s:%s: %w", run, step, err)
	}
	prompts := make([][]protocol.Message, len(histories))
	build := prompt.BuildMessages
	if x.Action == protocol.ActRun { // what its turn had
		build = func(h protocol.History) ([]protocol.Message, error) {
			told, err := prompt.Within(h, roles.HistoryMax)
			return told.Messages, err
		}
	}
	for i, h := range histories {
		if prompts[i], err = build(h); err != nil {
			return nil, fmt.Errorf("%s: %w", wanted[i], err)
		}
	}
	now, tools := prompts[0], json.RawMessage(histories[0].Tools)
	if len(tools) == 0 {
		tools = json.RawMessage("[]")
	}
	out := &api.Messages{Prompt: api.Prompt{Schema: "wf.messages/v1", Digest: prompt.Digest(histories[0].Tools, now).String(), Messages: now, Tools: tools}}
	if x.Reuse != nil {
		out.ReusedFrom = x.Reuse.From
	}
	if x.Action == protocol.ActRun {
		return out, command(ctx, e, run, x, histories[0], out)
	}
	if last := len(prompts) - 1; last > 0 {
		before := prompts[last]
		out.Resumes = &wanted[last]
		for out.SharedPrefix < min(len(now), len(before)) && reflect.DeepEqual(now[out.SharedPrefix], before[out.SharedPrefix]) {
			out.SharedPrefix++
		}
		out.Seam = seam(histories[0].Tools, now, histories[last].Tools, before, wanted[last])
	}
	return out, nil
}

// seam compares a prompt with the one before it, of the visit name.
func seam(tools string, now []protocol.Message, oldTools string, before []protocol.Message, name string) *api.Seam {
	all, earlier := prompt.Bytes(tools, now), prompt.Bytes(oldTools, before)
	s := &api.Seam{Step: name, Before: len(before), Bytes: len(all)}
	if task.Offered(tools) { // of a task before, only the system message is read again
		s.Before, earlier = 1, prompt.Lasting(earlier)
	}
	same := prompt.Compare(earlier, all)
	s.Shared = same.Shared
	if !same.Whole() {
		s.Part = same.Part
	}
	return s
}

// command adds what a command was given.
func command(ctx context.Context, e *engine.Engine, run protocol.RunID, x *api.Step, h protocol.History, out *api.Messages) error {
	st, err := e.State(ctx, run)
	if err != nil {
		return err
	}
	r, ok := st.Program().Workflow.RoleNamed(x.Role)
	if !ok {
		return nil
	}
	out.Command = &api.Command{Run: r.Run, Dir: r.Dir, Env: r.Env, Stdin: r.Stdin, EdgePrompt: h.Visit.EdgePrompt}
	if x.Item != nil {
		out.Command.Item, err = item(ctx, e.Store, run, x.Began)
	}
	return err
}

// item is the value of the item that began with an event.
func item(ctx context.Context, s engine.Store, run protocol.RunID, began protocol.Seq) (protocol.JSON, error) {
	for x, err := range s.After(ctx, run, began-1) {
		if err != nil {
			return nil, err
		}
		d, err := cas.DecodeData[protocol.StepStarted](&x.Event)
		if err != nil || d.Item == nil {
			return nil, err
		}
		return protocol.ReadPayload(ctx, s, d.Item.Value)
	}
	return nil, protocol.ErrCorrupt.With("", "run %s has no event %d", run, began)
}
