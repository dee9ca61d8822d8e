package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"

	"wf/cas"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// assignment is a visit handed to a worker.
type assignment struct {
	turn  protocol.Turn
	begun protocol.StepStarted
	since protocol.Seq // of its first event, where there is a transcript to read; else 0
	by    roles.Performer
}

// assign makes x the turn of a visit, but for what is read from the store.
func (d *driver) assign(x *assignment, step string) error {
	v, a, err := d.s.visitNamed(step)
	if err != nil {
		return err
	}
	role, ok := d.s.prog.Workflow.RoleNamed(a.role)
	if !ok {
		return fmt.Errorf("the definition has no role %q", a.role)
	}
	*x = assignment{turn: d.s.turn(d.run, v.id, role), begun: d.startedAs(a, v)}
	x.turn.Visit, x.turn.Attempt, x.turn.Confined = v.number, v.attempt, d.confines(role)
	if x.by, err = d.e.performer(role.Action); err != nil {
		return err
	}
	if !inPlace(x.by) {
		x.turn.Key = stepKey(d.run, d.s.Start, a, v.item)
	}
	if x.turn.EdgePrompt, err = textOf(d.s.read, v.prompt); err != nil {
		return err
	}
	if v.item != nil {
		raw, err := protocol.PayloadBytes(d.s.read, v.item.Value)
		if err != nil {
			return err
		}
		x.turn.Item = &protocol.ItemValue{Index: v.item.Index, Value: raw}
	}
	if role.Form != "" && d.s.Info.Source.Defined() {
		source, err := textOf(d.s.read, protocol.Text{Link: d.s.Info.Source})
		if err != nil {
			return fmt.Errorf("source of the workflow: %w", err)
		}
		x.turn.Fields = lang.FormOrder([]byte(source), role.Name)
	}
	x.turn.LastUsage, x.turn.Compact = a.sizeBefore(v, d.s.equalItems()), v.compact
	x.turn.Windows, x.turn.Allowed = maps.Clone(d.s.windows), maps.Clone(d.s.allowed)
	if v.again {
		x.since = v.first
	}
	return d.render(&x.turn, a, role)
}

// startedAs are the fields that every step_started of a visit repeats.
func (d *driver) startedAs(a *act, v *visit) protocol.StepStarted {
	return protocol.StepStarted{Start: d.s.Start, Parents: a.links, Role: a.role, Visit: v.number, Item: v.item,
		Edge: a.edge, Via: a.via, EdgePrompt: v.prompt, Resumes: v.resumes, Tools: v.tools, Inject: v.inject,
		Attempt: v.attempt, Of: max(0, a.of)}
}

// turn holds what does not depend on the visit.
func (s *State) turn(run protocol.RunID, id protocol.StepID, role *protocol.Role) protocol.Turn {
	own, w := *role, s.prog.Workflow
	own.Context = s.context(role)
	t := protocol.Turn{Run: run, Workflow: w.Name, Step: id, Role: own, Context: s.Info.Context, Inputs: s.begun.raw, Secrets: w.Secrets, MCP: w.MCP,
		Workspace: s.Info.Workspace, File: s.Info.File, Models: s.Models(role)}
	if role.Action == protocol.ActWorkflow {
		t.Sources = s.Info.Sources
	}
	return t
}

// context is how a role sees its own past: for agents the run's override, else its own word.
func (s *State) context(role *protocol.Role) protocol.ContextMode {
	if s.Info.Context != "" && role.Action == protocol.ActPrompt {
		return s.Info.Context
	}
	return role.Context
}

// Models are what a role's agent tries in order: the run's override, else the role's own.
func (s *State) Models(role *protocol.Role) []string {
	return modelsOf(s.Info.Models, role)
}

func modelsOf(override map[string][]string, role *protocol.Role) []string {
	if m := override[role.Name]; len(m) > 0 {
		return m
	}
	if m := override[""]; len(m) > 0 {
		return m
	}
	return role.Model
}

// render evaluates the templates of the role for this visit.
func (d *driver) render(turn *protocol.Turn, a *act, role *protocol.Role) error {
	sc, err := d.s.scope(a.edge, a.inherited(), d.s.prog.RoleUses(role.Name))
	if err != nil {
		return err
	}
	if turn.Item != nil {
		if sc.Item, err = lang.DecodeJSON(turn.Item.Value); err != nil {
			return err
		}
		sc.Index = turn.Item.Index
	}
	r, err := d.s.prog.Templates(role, sc)
	if err != nil {
		return err
	}
	turn.Question, turn.Choices, turn.Env, turn.Values, turn.Wait = r.Question, r.Choices, r.Env, r.Values, r.Wait
	return nil
}

// prepare asks the performer for what the record holds of tools and injected text. It sees the
// tools of the predecessor, which a visit that resumes reuses.
func (d *driver) prepare(ctx context.Context, x Decision) (roles.Preparation, error) {
	role, ok := d.s.prog.Workflow.RoleNamed(x.Role)
	if !ok || x.Empty {
		return roles.Preparation{}, nil
	}
	p, err := d.e.performer(role.Action)
	if err != nil {
		return roles.Preparation{}, err
	}
	prep, ok := p.(roles.Preparer)
	if !ok {
		return roles.Preparation{}, nil
	}
	turn := d.s.turn(d.run, x.Step, role)
	turn.Visit, turn.EdgePrompt = x.Visit, x.EdgePrompt
	if x.Resumes.Defined() {
		var before protocol.StepRecord
		if err := decode(d.s.read, x.Resumes, &before); err != nil {
			return roles.Preparation{}, err
		}
		if turn.History.Tools, err = textOf(d.s.read, protocol.Text{Link: before.Tools}); err != nil {
			return roles.Preparation{}, err
		}
	}
	return prep.Prepare(ctx, turn)
}

// fill reads the history and the transcript; it runs in the worker's goroutine.
func (d *driver) fill(ctx context.Context, t *protocol.Turn, begun protocol.StepStarted, since protocol.Seq) error {
	if since > 0 {
		if err := transcript(d.e.reader(ctx), t, d.e.Store.After(ctx, d.run, since-1)); err != nil {
			return err
		}
	}
	if !actsOnFiles(t.Role.Action) {
		return nil
	}
	var err error
	t.History, err = d.e.lib.history(d.e.reader(ctx), d.past, begun)
	return err
}

// transcript collects the events of a visit, and of its run those that tell how a process ended,
// long texts in place, and pairs its answers.
func transcript(read Reader, t *protocol.Turn, events iter.Seq2[protocol.Entry, error]) error {
	step := t.Step.String()
	var asked protocol.WaitingFor
	for e, err := range events {
		ended := e.Step == nil && (e.Type == protocol.EvSuspended || e.Type == protocol.EvResumed)
		if err == nil && e.StepName() != step && !ended {
			continue
		}
		if err == nil {
			err = inline(read, &e.Event)
		}
		if err != nil {
			return err
		}
		t.Transcript = append(t.Transcript, e)
		switch e.Type {
		case protocol.EvWaiting:
			asked, err = cas.DecodeData[protocol.WaitingFor](&e.Event)
		case protocol.EvAnswered:
			var a protocol.Answered
			a, err = cas.DecodeData[protocol.Answered](&e.Event)
			t.Answers = append(t.Answers, protocol.AnswerTo{Waiting: asked, Answer: a, At: e.TS})
		case protocol.EvTimerFired:
			t.Answers = append(t.Answers, protocol.AnswerTo{Waiting: asked, Fired: true, At: e.TS})
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	return nil
}

// stepKey is WF_STEP_KEY.
func stepKey(run protocol.RunID, start protocol.Link, a *act, item *protocol.Item) string {
	b, err := json.Marshal([]any{run, start, a.links, a.role, a.edge, item})
	if err != nil {
		panic(err) // strings and links marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
