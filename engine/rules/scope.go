package rules

import (
	"fmt"
	"slices"

	"wf/engine/lang"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// Bounds of the caches of step values and of the outputs of fan-outs.
const (
	maxValues = 512
	maxLists  = 8
)

// scopeOf gathers what expressions see at a token that came from the roles named by from, as far
// as they look at it.
func (s *State) scopeOf(up ancestry, from []string, uses lang.Uses) (lang.Scope, error) {
	sc := lang.Scope{Inputs: s.begun.Inputs, Steps: map[string]*lang.Step{}}
	var err error
	for role, r := range up.latest {
		if !uses.Role(role, slices.Contains(from, role)) {
			continue
		}
		if sc.Steps[role], err = s.stepOf(r); err != nil {
			return sc, err
		}
		if uses.Files(role) {
			if sc.Steps[role], err = s.withFiles(r, sc.Steps[role]); err != nil {
				return sc, err
			}
		}
	}
	if len(from) == 1 {
		if st := sc.Steps[from[0]]; st != nil {
			sc.Output = st.Output
		}
		return sc, nil
	}
	sc.Outputs = map[string]any{}
	for _, role := range from {
		if st := sc.Steps[role]; st != nil {
			sc.Outputs[role] = st.Output
		}
	}
	return sc, nil
}

// stepOf is the value of an activation: of a fan-out the list of its outputs, in item order,
// null for an item that failed.
func (s *State) stepOf(r *ref) (*lang.Step, error) {
	if st := s.lists[r]; st != nil {
		return st, nil
	}
	if !r.Batch {
		return s.valueOf(r.Records[0])
	}
	list := []any{}
	st := &lang.Step{Status: string(protocol.StepOK)}
	for _, l := range r.Records {
		v, err := s.valueOf(l)
		if err != nil {
			return nil, err
		}
		switch protocol.StepStatus(v.Status) {
		case protocol.StepSkipped:
			st.Status = v.Status
			continue
		case protocol.StepFailed:
			st.Status = v.Status
			list = append(list, nil)
		default:
			list = append(list, v.Output)
		}
		st.Visit = max(st.Visit, v.Visit)
	}
	st.Output = list
	if len(s.lists) >= maxLists {
		clear(s.lists)
	}
	s.lists[r] = st
	return st, nil
}

// valueOf is a StepRecord as expressions see it, with its data and text.
func (s *State) valueOf(l protocol.Link) (*lang.Step, error) {
	if v := s.vals[l]; v != nil {
		return v, nil
	}
	r, err := s.from.Step(l)
	if err != nil {
		return nil, fmt.Errorf("step record %s: %w", l.Short(), err)
	}
	out := map[string]any{}
	if r.Data.Defined() {
		raw, err := s.from.Payload(r.Data)
		if err != nil {
			return nil, err
		}
		if out, err = lang.DecodeObject(raw); err != nil {
			return nil, fmt.Errorf("data of step record %s: %w", l.Short(), err)
		}
	}
	v := &lang.Step{Output: out, Status: string(r.Status), Visit: r.Visit}
	if n, ok := out["exit_code"].(int); ok {
		v.ExitCode = &n
	}
	if r.Output.Defined() {
		b, err := s.from.Payload(r.Output)
		if err != nil {
			return nil, err
		}
		v.Text = string(b)
	}
	if role, ok := s.prog.Workflow.RoleNamed(r.Role); ok && hasText(role.Action) {
		out["text"] = v.Text
		if role.Action == protocol.ActPrompt {
			_, out["body"], _ = frontmatter.Split(v.Text) // without a fence all of it is body
		}
	}
	if len(s.vals) >= maxValues {
		clear(s.vals)
	}
	s.vals[l] = v
	return v, nil
}

// hasText reports whether the output of an action has a text beside its fields.
func hasText(a protocol.Action) bool {
	switch a {
	case protocol.ActPrompt, protocol.ActRun, protocol.ActAsk, protocol.ActWait:
		return true
	}
	return false
}

// words is a text that only people read: where its block cannot be had, a word of that.
func (s *State) words(t protocol.Text) string {
	text, err := s.text(t)
	if err != nil {
		return fmt.Sprintf("(its text cannot be read: %v)", err)
	}
	return text
}
