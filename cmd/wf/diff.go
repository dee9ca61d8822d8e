package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

func newDiff(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs, step by step",
		Long: `Compare two runs. Steps with the same CID are the same in everything and are skipped; the first step
that differs comes with what differs in it. Exit 1 when something does.`,
		Example: `  wf diff -2 -1
  wf diff 7K3Q 7K3R -v`,
		Args: takes(2, 2, "a run", "a second run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s *cas.Store) error { return a.diff(ctx, s, args[0], args[1]) })
		},
	}
}

// diffJSON is wf.diff/v1.
type diffJSON struct {
	Schema     string         `json:"schema"`
	Left       protocol.RunID `json:"left"`
	Right      protocol.RunID `json:"right"`
	Equal      bool           `json:"equal"`
	Steps      []stepDiff     `json:"steps"`
	Definition []string       `json:"definition"` // paths that differ
	Inputs     []string       `json:"inputs"`
}

type stepDiff struct {
	ID      string   `json:"id"`
	How     string   `json:"how"` // equal, changed, left, right
	Left    *string  `json:"left"`
	Right   *string  `json:"right"`
	Changed []string `json:"changed"` // what differs, in words
	text    string   // unified diff of the texts
}

func (a *app) diff(ctx context.Context, s *cas.Store, left, right string) error {
	var views [2]*api.Run
	e := a.Engine(s, nil)
	for i, arg := range []string{left, right} {
		run, err := a.resolveRun(ctx, s, arg)
		if err != nil {
			return err
		}
		if views[i], err = e.View(ctx, run); err != nil {
			return err
		}
	}
	d, err := diffOf(ctx, s, views[0], views[1])
	if err != nil {
		return err
	}
	if a.asJSON() {
		err = a.answer(d)
	} else {
		err = a.diffLines(d)
	}
	if err == nil && !d.Equal {
		return silent{errDifference}
	}
	return err
}

func diffOf(ctx context.Context, from protocol.Blocks, l, r *api.Run) (diffJSON, error) {
	d := diffJSON{Schema: "wf.diff/v1", Left: l.ID, Right: r.ID, Steps: []stepDiff{}, Definition: []string{}, Inputs: []string{}}
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
	d.Equal = len(d.Definition)+len(d.Inputs) == 0 && !slices.ContainsFunc(d.Steps, func(s stepDiff) bool { return s.How != "equal" })
	return d, nil
}

// stepDiffs pairs the steps by their ids, in the order of the left run, then those that only
// the right one has.
func stepDiffs(l, r []*api.Step) []stepDiff {
	byID := map[string]*api.Step{}
	for _, s := range r {
		byID[s.ID] = s
	}
	out := []stepDiff{}
	for _, s := range l {
		other := byID[s.ID]
		delete(byID, s.ID)
		switch {
		case other == nil:
			out = append(out, stepDiff{ID: s.ID, How: "left", Left: s.CID, Changed: []string{}})
		case s.CID != nil && other.CID != nil && *s.CID == *other.CID:
			out = append(out, stepDiff{ID: s.ID, How: "equal", Left: s.CID, Right: other.CID, Changed: []string{}})
		default:
			out = append(out, changedStep(s, other))
		}
	}
	for _, s := range r {
		if byID[s.ID] != nil {
			out = append(out, stepDiff{ID: s.ID, How: "right", Right: s.CID, Changed: []string{}})
		}
	}
	return out
}

// changedStep says in words what differs. Where nothing of the visit itself does, it is its
// ancestors that differ.
func changedStep(l, r *api.Step) stepDiff {
	d := stepDiff{ID: l.ID, How: "changed", Left: l.CID, Right: r.CID, Changed: []string{}}
	add := func(differs bool, format string, args ...any) {
		if differs {
			d.Changed = append(d.Changed, fmt.Sprintf(format, args...))
		}
	}
	add(l.Status != r.Status, "status %s → %s", l.Status, r.Status)
	add(l.EdgePrompt != r.EdgePrompt, "edge prompt")
	add(l.Edge != r.Edge || l.Via != r.Via, "edge %d → %d", l.Edge, r.Edge)
	if l.Text != r.Text {
		d.text = udiff.Unified(l.ID, r.ID, l.Text+"\n", r.Text+"\n")
		plus, minus := counts(d.text)
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
	for l := range strings.Lines(unified) {
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
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
			keys := map[string]bool{}
			for k := range lv {
				keys[k] = true
			}
			for k := range rv {
				keys[k] = true
			}
			for _, k := range sortedKeys(keys) {
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

func (a *app) diffLines(d diffJSON) error {
	p := paint{a.out.color}
	var rows [][]string
	shown := false
	var text string
	for _, s := range d.Steps {
		switch s.How {
		case "equal":
			rows = append(rows, []string{p.dim("="), s.ID, shortOf(s.Left), "same CID"})
		case "left":
			rows = append(rows, []string{p.red("−"), s.ID, shortOf(s.Left), "only in " + string(d.Left)})
		case "right":
			rows = append(rows, []string{p.green("+"), s.ID, shortOf(s.Right), "only in " + string(d.Right)})
		default:
			rows = append(rows, []string{p.yellow("~"), s.ID, shortOf(s.Right), visible(strings.Join(s.Changed, ", "))})
			if (!shown || a.Verbose) && s.text != "" {
				text, shown = text+s.text, true
			}
		}
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	for _, what := range []struct {
		name  string
		paths []string
	}{{"definition", d.Definition}, {"inputs", d.Inputs}} {
		for _, path := range what.paths {
			fmt.Fprintf(a.out, "  %s: %s\n", what.name, visible(path))
		}
	}
	if text != "" {
		fmt.Fprintf(a.out, "\n%s", visible(text))
	}
	if d.Equal {
		_, err := fmt.Fprintln(a.out, p.green("✓")+" the runs conclude the same")
		return err
	}
	return nil
}
