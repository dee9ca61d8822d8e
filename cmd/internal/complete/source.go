package complete

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// A Source is what completion looks things up in.
type Source struct {
	// Runs calls use with the runs of the store, where there is one. It makes no store and asks no server.
	Runs     func(ctx context.Context, use func(api.Runs) error) error
	Workflow func(file string) (protocol.Workflow, bool) // false where the file holds none
	Scopes   func(ctx context.Context) []string          // memories of the store
	Examples []string                                    // of workflows: name, a tab, what it shows
	Formats  func(*cobra.Command) []string               // that -o takes; nil where it names a file
	Written  func(arg string) string                     // an argument as the person wrote it
}

// offeredRuns are the runs that moved last; none where they cannot be read.
func (s *Source) offeredRuns(ctx context.Context, behind string) (out []string) {
	_ = s.Runs(ctx, func(runs api.Runs) error {
		page, err := runs.List(ctx, api.Query{Limit: 20})
		if err != nil {
			return err
		}
		for _, r := range page.Items {
			out = append(out, string(r.ID)+behind+"\t"+r.Workflow+", "+string(r.Status))
		}
		return nil
	})
	return out
}

// offeredSteps are the steps of a run that is named as the person began.
func (s *Source) offeredSteps(ctx context.Context, name string) (out []string) {
	_ = s.Runs(ctx, func(runs api.Runs) error {
		_, v, err := viewed(ctx, runs, name)
		if err != nil {
			return err
		}
		for _, step := range v.Steps {
			out = append(out, name+":"+step.ID+"\t"+step.Status)
		}
		return nil
	})
	return out
}

// offeredFields are the fields of the form that a run waits for, and behind the name of one
// that has few values those.
func (s *Source) offeredFields(ctx context.Context, arg, begun string) (out []string) {
	name, _, named := strings.Cut(begun, "=")
	_ = s.Runs(ctx, func(runs api.Runs) error {
		at, v, err := viewed(ctx, runs, s.Written(arg))
		if err != nil {
			return err
		}
		for _, w := range v.Waiting {
			if at.Step != "" && at.Step != w.Step {
				continue
			}
			for _, f := range protocol.FormFields(string(w.Form)) {
				if !named {
					out = append(out, f.Name+"=\t"+render.OneLine(cmp.Or(f.Description, render.AboutField(f)), 80))
					continue
				}
				values := f.Enum
				if f.Type == "boolean" {
					values = []protocol.JSON{protocol.JSON("true"), protocol.JSON("false")}
				}
				for _, v := range values {
					if f.Name == name {
						out = append(out, f.Name+"="+protocol.JSONText(v))
					}
				}
			}
		}
		return nil
	})
	return out
}

func (s *Source) offeredRoles(file, before, behind string) []string {
	var out []string
	w, _ := s.Workflow(file)
	for _, r := range w.Roles {
		if r.Action == protocol.ActPrompt {
			out = append(out, before+r.Name+behind)
		}
	}
	return out
}

func (s *Source) offeredInputs(file string) []string {
	var out []string
	w, _ := s.Workflow(file)
	for _, name := range slices.Sorted(maps.Keys(w.Inputs)) {
		out = append(out, name+"=\t"+w.Inputs[name].Description)
	}
	return out
}

// viewed is what a person wrote, and the run that it is of.
func viewed(ctx context.Context, runs api.Runs, arg string) (api.Ref, *api.Run, error) {
	at, err := runs.Resolve(ctx, arg)
	if err != nil {
		return at, nil, err
	}
	v, err := runs.Run(ctx, at.Run, api.Window{})
	return at, v, err
}
