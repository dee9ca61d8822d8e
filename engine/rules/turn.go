package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"wf/engine/lang"
	"wf/protocol"
)

// Turn is what a visit that has begun is performed with, as far as it follows from the journal:
// templates rendered, models chosen. Its key, whether it is confined, its history and its transcript are
// left to the engine. A step that is not in the live region is an error wrapping protocol.ErrNotFound.
func (s *State) Turn(run protocol.RunID, step string) (protocol.Turn, error) {
	v, a, err := s.visitNamed(step)
	if err != nil {
		return protocol.Turn{}, err
	}
	role, ok := s.prog.Workflow.RoleNamed(a.Role)
	if !ok {
		return protocol.Turn{}, fmt.Errorf("the definition has no role %q", a.Role)
	}
	t := s.TurnOf(run, v.id(), role)
	t.Visit, t.Attempt = v.Number, v.Attempt
	if err = s.wholePrompt(v); err != nil {
		return t, err
	}
	t.EdgePrompt = v.Prompt.S
	if v.Item != nil {
		raw, err := s.from.Payload(v.Item.Value)
		if err != nil {
			return t, err
		}
		t.Item = &protocol.ItemValue{Index: v.Item.Index, Value: raw}
	}
	if role.Form != "" && s.Info.Source.Defined() {
		source, err := s.from.Payload(s.Info.Source)
		if err != nil {
			return t, fmt.Errorf("source of the workflow: %w", err)
		}
		t.Fields = lang.FormOrder(source, role.Name)
	}
	if v.of.Via == protocol.ViaAlways {
		if t.Verdict, err = s.Verdict(); err != nil {
			return t, err
		}
	}
	t.LastUsage, t.Compact = a.sizeBefore(v, s.equalItems()), v.Compact
	if t.Given, err = s.given(a, role); err != nil {
		return t, err
	}
	t.Windows, t.Allowed = maps.Clone(s.Windows), maps.Clone(s.Allowed)
	return t, s.render(&t, a, role)
}

// render evaluates the templates of the role for this visit.
func (s *State) render(t *protocol.Turn, a *act, role *protocol.Role) error {
	sc, err := s.visitScope(a, s.prog.RoleUses(role.Name))
	if err != nil {
		return err
	}
	if t.Item != nil {
		if sc.Item, err = lang.DecodeJSON(t.Item.Value); err != nil {
			return err
		}
		sc.Index = t.Item.Index
	}
	r, err := s.prog.Templates(role, sc)
	if err != nil {
		return err
	}
	t.Question, t.Choices, t.Env, t.Stdin, t.Values, t.Wait = r.Question, r.Choices, r.Env, r.Stdin, r.Values, r.Wait
	return nil
}

// visitScope is what the templates of a role see in a visit.
func (s *State) visitScope(a *act, uses lang.Uses) (lang.Scope, error) {
	if a.Via != protocol.ViaAlways {
		return s.scope(a.Edge, a.inherited(), uses)
	}
	sc, err := s.scopeOf(ancestry{latest: a.latest}, nil, uses)
	if err == nil {
		sc.Verdict, err = s.verdictValue()
	}
	return sc, err
}

// TurnOf is what the turns of all visits of a role share.
func (s *State) TurnOf(run protocol.RunID, id protocol.StepID, role *protocol.Role) protocol.Turn {
	own, w := *role, s.prog.Workflow
	own.Context = s.context(role)
	t := protocol.Turn{Run: run, Workflow: w.Name, Step: id, Role: own, Context: s.Info.Context, Cache: s.Info.Cache, Trial: s.Info.Trial, Origin: s.Info.Origin, Inputs: s.begun.Raw, Secrets: w.Secrets, MCP: w.MCP,
		Workspace: s.Info.Workspace, File: s.Info.File, Models: Models(s.Info.Models, role)}
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

// Models are what a role's agent tries in order: the override for it or, under "", for every role, else
// the role's own.
func Models(override map[string][]string, role *protocol.Role) []string {
	if m := override[role.Name]; len(m) > 0 {
		return m
	}
	if m := override[""]; len(m) > 0 {
		return m
	}
	return role.Model
}

// StepKey is WF_STEP_KEY: the same for every attempt of a visit, and for no other visit. d is a
// step_started of it.
func StepKey(run protocol.RunID, d *protocol.StepStarted) string {
	b, err := json.Marshal([]any{run, d.Start, d.Parents, d.Role, d.Edge, d.Item})
	if err != nil {
		panic(err) // strings and links marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
