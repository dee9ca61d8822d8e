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
	name := protocol.RunID(strings.ToUpper(w.Name))
	p, err := s.List(ctx, api.Query{Text: string(name), Limit: api.MaxLimit, All: true})
	if err != nil {
		return "", err
	}
	var found []string
	for _, row := range p.Items {
		switch {
		case row.ID == name:
			return name, nil
		case strings.HasPrefix(string(row.ID), string(name)):
			found = append(found, string(row.ID))
		}
	}
	switch len(found) {
	case 0:
		// The server may know it, and not have asked its worker: it says what is wrong then.
		_, err := s.Run(ctx, name, api.Window{Limit: 1})
		switch {
		case err == nil:
			return name, nil
		case !errors.Is(err, protocol.ErrUnknownRun):
			return "", err
		}
		s.tellMissing(p)
		return "", protocol.ErrUnknownRun.With("", "no run %q in %s", w.Name, s.Name)
	case 1:
		return protocol.RunID(found[0]), nil
	}
	return "", api.Ambiguous(w.Name, found)
}

// tellMissing names the workers whose runs are not in the list of a hub.
func (s Service) tellMissing(p *api.Page) {
	if len(p.Missing) > 0 && s.Tell != nil {
		s.Tell("the runs of " + strings.Join(p.Missing, ", ") + " are not listed: no answer from there")
	}
}
