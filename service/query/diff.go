package query

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"

	"github.com/aymanbagabas/go-udiff"
)

// Diff compares two runs that were read as a whole; from has their definitions.
func Diff(ctx context.Context, from protocol.Blocks, l, r *api.Run) (api.Diff, error) {
	d := api.Diff{Schema: "wf.diff/v1", Left: l.ID, Right: r.ID, Steps: []api.StepDiff{}, Definition: []string{}, Inputs: []string{}}
	if l.Definition != r.Definition {
		var parts [2]any
		for i, v := range []*api.Run{l, r} {
			link, err := protocol.ParseLink(v.Definition)
			if err != nil {
				return d, err
			}
			b, err := from.Block(ctx, link)
			if err != nil {
				return d, err
			}
			if b, err = cas.ToJSON(b); err != nil {
				return d, err
			}
			if err := json.Unmarshal(b, &parts[i]); err != nil {
				return d, err
			}
		}
		d.Definition = differing("", parts[0], parts[1], nil)
	}
	var inputs [2]any
	for i, v := range []*api.Run{l, r} {
		if err := json.Unmarshal(v.Info.Inputs, &inputs[i]); err != nil {
			return d, err
		}
	}
	d.Inputs = append(d.Inputs, differing("", inputs[0], inputs[1], nil)...)
	d.Steps = stepDiffs(l.Steps, r.Steps)
	d.Equal = len(d.Definition)+len(d.Inputs) == 0 && !slices.ContainsFunc(d.Steps, func(s api.StepDiff) bool { return s.How != "equal" })
	return d, nil
}

// stepDiffs pairs the steps by their ids, in the order of the left run, then those that only
// the right one has.
func stepDiffs(l, r []*api.Step) []api.StepDiff {
	byID := map[string]*api.Step{}
	for _, s := range r {
		byID[s.ID] = s
	}
	out := []api.StepDiff{}
	for _, s := range l {
		other := byID[s.ID]
		delete(byID, s.ID)
		switch {
		case other == nil:
			out = append(out, api.StepDiff{ID: s.ID, How: "left", Left: s.CID, Changed: []string{}})
		case s.CID != nil && other.CID != nil && *s.CID == *other.CID:
			out = append(out, api.StepDiff{ID: s.ID, How: "equal", Left: s.CID, Right: other.CID, Changed: []string{}})
		default:
			out = append(out, changedStep(s, other))
		}
	}
	for _, s := range r {
		if byID[s.ID] != nil {
			out = append(out, api.StepDiff{ID: s.ID, How: "right", Right: s.CID, Changed: []string{}})
		}
	}
	return out
}

// changedStep says in words what differs. Where nothing of the visit itself does, it is its
// ancestors that differ.
func changedStep(l, r *api.Step) api.StepDiff {
	d := api.StepDiff{ID: l.ID, How: "changed", Left: l.CID, Right: r.CID, Changed: []string{}}
	add := func(differs bool, format string, args ...any) {
		if differs {
			d.Changed = append(d.Changed, fmt.Sprintf(format, args...))
		}
	}
	add(l.Status != r.Status, "status %s → %s", l.Status, r.Status)
	add(l.EdgePrompt != r.EdgePrompt, "edge prompt")
	add(l.Edge != r.Edge || l.Via != r.Via, "edge %d → %d", l.Edge, r.Edge)
	if l.Text != r.Text {
		d.Unified = udiff.Unified(l.ID, r.ID, l.Text+"\n", r.Text+"\n")
		plus, minus := counts(d.Unified)
		add(true, "output +%d −%d", plus, minus)
	}
	if !bytes.Equal(l.Output, r.Output) {
		var lo, ro any
		if json.Unmarshal(l.Output, &lo) == nil && json.Unmarshal(r.Output, &ro) == nil {
			add(true, "%s", strings.Join(differing("", lo, ro, nil), ", "))
		}
	}
	add(l.Tools != r.Tools, "tools")
	add(l.Inject != r.Inject, "injected text")
	add(failed(l) != failed(r), "error")
	before := !slices.Equal(l.Parents, r.Parents) || word(l.Resumes) != word(r.Resumes)
	both := l.CID != nil && r.CID != nil
	add(len(d.Changed) == 0 && both && before, "what came before it")
	add(len(d.Changed) == 0 && both, "the definition or the inputs that it ran under")
	add(l.CID == nil || r.CID == nil, "%s → %s", l.Status, r.Status)
	return d
}

// failed is the error of a step, or "".
func failed(s *api.Step) string {
	if s.Error == nil {
		return ""
	}
	return s.Error.Message
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func counts(unified string) (plus, minus int) {
	within := false // behind the names, which begin like lines that differ
	for l := range strings.Lines(unified) {
		switch within = within || strings.HasPrefix(l, "@@"); {
		case !within:
		case strings.HasPrefix(l, "+"):
			plus++
		case strings.HasPrefix(l, "-"):
			minus++
		}
	}
	return plus, minus
}

// differing lists the paths at which two JSON values differ; named list elements, such as
// roles, go by their name. Short values are told.
func differing(path string, l, r any, out []string) []string {
	switch lv := l.(type) {
	case map[string]any:
		if rv, ok := r.(map[string]any); ok {
			either := maps.Clone(lv)
			maps.Copy(either, rv)
			for _, k := range slices.Sorted(maps.Keys(either)) {
				out = differing(join(path, k), lv[k], rv[k], out)
			}
			return out
		}
	case []any:
		if rv, ok := r.([]any); ok {
			ln, rn := named(lv), named(rv)
			if ln != nil && rn != nil {
				return differing(path, ln, rn, out)
			}
			if len(lv) == len(rv) {
				for i := range lv {
					out = differing(join(path, fmt.Sprint(i)), lv[i], rv[i], out)
				}
				return out
			}
		}
	}
	lj, errL := json.Marshal(l)
	rj, errR := json.Marshal(r)
	switch {
	case errL != nil || errR != nil || bytes.Equal(lj, rj):
		return out
	case len(lj)+len(rj) < 60:
		return append(out, fmt.Sprintf("%s %s → %s", path, lj, rj))
	}
	return append(out, path)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// named turns a list of objects with names into a map, nil for any other list.
func named(list []any) map[string]any {
	out := map[string]any{}
	for _, x := range list {
		m, ok := x.(map[string]any)
		name, isName := m["name"].(string)
		if !ok || !isName {
			return nil
		}
		out[name] = m
	}
	return out
}

// VisitDiff compares a visit with the one of the same role, and the same item, before it.
func VisitDiff(ctx context.Context, e *engine.Engine, run protocol.RunID, step string) (*api.VisitDiff, error) {
	v, err := e.Outline(ctx, run)
	if err != nil {
		return nil, err
	}
	now, err := StepOf(v, step)
	if err != nil {
		return nil, err
	}
	before := previous(v, now)
	for _, s := range []**api.Step{&now, &before} {
		if *s == nil {
			continue
		}
		one, err := e.ViewStep(ctx, run, (*s).ID)
		if err != nil {
			return nil, err
		}
		if *s, err = StepOf(one, (*s).ID); err != nil {
			return nil, err
		}
	}
	out := &api.VisitDiff{Schema: "wf.diff/v1", Run: run, Step: step, Changed: []string{}}
	if before == nil {
		if now.Text != "" {
			out.Unified = udiff.Unified("/dev/null", now.ID, "", now.Text+"\n")
			out.Added, _ = counts(out.Unified)
		}
		return out, nil
	}
	d := changedStep(before, now)
	out.Previous, out.Changed, out.Unified = &before.ID, d.Changed, d.Unified
	out.Added, out.Removed = counts(d.Unified)
	out.Equal = before.Text == now.Text && bytes.Equal(before.Output, now.Output) && before.Status == now.Status
	return out, nil
}

// previous is the newest visit of the same role and item before a visit, or nil.
func previous(v *api.Run, now *api.Step) *api.Step {
	var before *api.Step
	for _, s := range v.Steps {
		if s == now {
			return before
		}
		sameItem := s.Item == nil && now.Item == nil || s.Item != nil && now.Item != nil && *s.Item == *now.Item
		if s.Role == now.Role && sameItem {
			before = s
		}
	}
	return nil
}
