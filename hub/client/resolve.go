package client

import (
	"context"
	"errors"
	"strings"

	"wf/api"
	"wf/protocol"
)

// Resolve finds what a reference names at the server.
func (s Service) Resolve(ctx context.Context, text string) (api.Ref, error) {
	if l, err := protocol.ParseLink(text); err == nil {
		return api.Ref{Block: l}, nil
	}
	w, err := api.ReadRef(text)
	if err != nil {
		return api.Ref{}, err
	}
	find := s.named
	if w.Latest > 0 {
		find = s.latest
	}
	run, err := find(ctx, w)
	return api.Ref{Run: run, Step: w.Step}, err
}

// latest is the nth newest run that is no sub-workflow.
func (s Service) latest(ctx context.Context, w api.Written) (protocol.RunID, error) {
	if w.Latest > api.MaxLimit {
		return "", protocol.ErrUsage.With("", "%s: the latest run is -1", w.Name)
	}
	p, err := s.List(ctx, api.Query{Limit: w.Latest})
	if err != nil {
		return "", err
	}
	s.tellMissing(p)
	if len(p.Items) < w.Latest {
		return "", protocol.ErrUnknownRun.With("wf ls lists the runs", "%s: %s has %s", w.Name, s.Name, protocol.Plural(len(p.Items), "run"))
	}
	return p.Items[w.Latest-1].ID, nil
}

// named is the run of an id, or of the beginning of one.
func (s Service) named(ctx context.Context, w api.Written) (protocol.RunID, error) {
	p, err := s.List(ctx, api.Query{Text: w.Name, Limit: api.MaxLimit, All: true})
	if err != nil {
		return "", err
	}
	listed := make([]protocol.RunID, len(p.Items))
	for i, row := range p.Items {
		listed[i] = row.ID
	}
	found := api.Named(listed, w.Name)
	switch len(found) {
	case 0:
		// The server may know it, and not have asked its worker: it says what is wrong then.
		if name := protocol.RunID(strings.ToUpper(w.Name)); strings.Trim(w.Name, ".") != "" {
			_, err := s.Run(ctx, name, api.Window{Limit: 1})
			switch {
			case err == nil:
				return name, nil
			case !errors.Is(err, protocol.ErrUnknownRun):
				return "", err
			}
		}
		s.tellMissing(p)
		return "", protocol.ErrUnknownRun.With("", "no run %q in %s", w.Name, s.Name)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, run := range found {
		names[i] = string(run)
	}
	return "", api.Ambiguous(w.Name, names)
}

// tellMissing names the workers whose runs are not in the list of a hub.
func (s Service) tellMissing(p *api.Page) {
	if len(p.Missing) > 0 && s.Tell != nil {
		s.Tell("the runs of " + strings.Join(p.Missing, ", ") + " are not listed: no answer from there")
	}
}
