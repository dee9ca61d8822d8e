package rules

import (
	"fmt"
	"slices"

	"wf/engine/lang"
	"wf/protocol"
)

// given are the artifacts that a role says its visits are given: those of the nearest visits among the ancestors of one.
func (s *State) given(a *act, role *protocol.Role) ([]protocol.Given, error) {
	if role.Artifacts == nil {
		return nil, nil
	}
	var out []protocol.Given
	for _, name := range role.Artifacts.From {
		g := protocol.Given{Role: name}
		if r := a.latest[name]; r != nil {
			var err error
			if g.Trees, err = s.trees(r); err != nil {
				return nil, fmt.Errorf("artifacts of %s: %w", name, err)
			}
			g.Ran, g.Batch = true, r.Batch
		}
		out = append(out, g)
	}
	return out, nil
}

// trees are the artifacts of an activation, by item, null for none. An empty fan-out has no items.
func (s *State) trees(r *ref) ([]protocol.Link, error) {
	var out []protocol.Link
	for i, l := range r.Records {
		if i < len(r.Kept) && r.Kept[i].Defined() {
			out = append(out, r.Kept[i])
			continue
		}
		rec, err := s.from.Step(l)
		if err != nil {
			return nil, fmt.Errorf("step record %s: %w", l.Short(), err)
		}
		if r.Batch && rec.Item == nil {
			continue
		}
		out = append(out, rec.Artifacts)
	}
	return out, nil
}

// kept are the files that sub-workflows of an activation keep, by item; nil where there are none.
func (a *act) kept() []protocol.Link {
	some := func(v *visit) bool { return v != nil && v.Kept.Defined() }
	if !slices.ContainsFunc(a.visits, some) {
		return nil
	}
	out := make([]protocol.Link, len(a.visits))
	for i, v := range a.visits {
		if v != nil {
			out[i] = v.Kept
		}
	}
	return out
}

// withFiles is a step with the files that it keeps. Those of a fan-out have the index of their item before their path.
func (s *State) withFiles(r *ref, st *lang.Step) (*lang.Step, error) {
	if seen := s.filed[r]; seen != nil {
		return seen, nil
	}
	trees, err := s.trees(r)
	if err != nil {
		return nil, err
	}
	files := &lang.Files{List: []any{}}
	for i, root := range trees {
		if !root.Defined() {
			continue
		}
		some, n, err := s.from.Files(root, lang.FilesMax-len(files.List))
		if err != nil {
			return nil, fmt.Errorf("artifacts of %s: %w", r.Records[i].Short(), err)
		}
		files.Count += n
		for _, f := range some {
			if r.Batch {
				f.Path = fmt.Sprintf("%d/%s", i, f.Path)
			}
			files.List = append(files.List, map[string]any{"path": f.Path, "size": int(f.Size), "mode": f.Mode, "hash": f.Link.String()})
		}
	}
	with := &lang.Step{Output: st.Output, Text: st.Text, Status: st.Status, ExitCode: st.ExitCode, Visit: st.Visit, Files: files}
	if len(s.filed) >= maxLists {
		clear(s.filed)
	}
	s.filed[r] = with
	return with, nil
}
