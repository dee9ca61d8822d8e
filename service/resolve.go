package service

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/protocol/lazy"
	"wf/service/compose"
	"wf/service/query"
	"wf/store"
)

// Resolve finds what a reference names in the store.
func (l *Local) Resolve(ctx context.Context, text string) (api.Ref, error) {
	return Resolve(ctx, l.Setup, l.Store, text)
}

// Resolve finds what a reference names in a store. One that fits nothing is an error wrapping
// protocol.ErrUnknownRun or ErrNotFound, one that fits several things wraps ErrAmbiguous and lists them.
func Resolve(ctx context.Context, u *compose.Setup, s store.Store, text string) (api.Ref, error) {
	if l, err := protocol.ParseLink(text); err == nil {
		return api.Ref{Block: l}, nil
	}
	w, err := api.ReadRef(text)
	if err != nil {
		return api.Ref{}, err
	}
	if w.Latest > 0 {
		run, err := latestRun(ctx, u, s, w, nil)
		return api.Ref{Run: run, Step: w.Step}, err
	}
	runs, err := runsLike(ctx, s, w.Name)
	if err != nil {
		return api.Ref{}, err
	}
	var blocks []protocol.Link
	if part := cutCIDPrefix(w.Name); w.Step == "" && cidPart().MatchString(part) {
		if blocks, err = s.Find(ctx, part); err != nil {
			return api.Ref{}, err
		}
	}
	switch {
	case len(runs) == 1 && (len(blocks) == 0 || strings.EqualFold(string(runs[0]), w.Name)):
		return api.Ref{Run: runs[0], Step: w.Step}, nil
	case len(runs) == 0 && len(blocks) == 1:
		return api.Ref{Block: blocks[0]}, nil
	case len(runs)+len(blocks) > 1:
		var names []string
		for _, r := range runs {
			names = append(names, string(r))
		}
		for _, b := range blocks {
			names = append(names, b.String())
		}
		return api.Ref{}, api.Ambiguous(w.Name, names)
	case strings.HasPrefix(w.Name, "bafy") || strings.HasPrefix(w.Name, "bafk"):
		return api.Ref{}, protocol.ErrNotFound.With("", "no block %s in %s", w.Name, store.Shown(s.Name()))
	}
	for _, id := range []string{w.Name, strings.ToUpper(w.Name)} {
		t, err := cas.Tombstone(ctx, s, protocol.RunID(id))
		if err == nil && t != nil {
			err = t.Error()
		}
		if err != nil {
			return api.Ref{}, err
		}
	}
	return api.Ref{}, protocol.ErrUnknownRun.With("", "no run %q in %s", w.Name, store.Shown(s.Name()))
}

// cidPart is what may be written for a CID: base32, at least 6 characters of it.
var cidPart = lazy.Regexp(`^[a-z2-7]{6,}$`)

// cidPrefixes is how all CIDs of records and payloads begin.
var cidPrefixes = []string{"bafyrei", "bafkrei"}

func cutCIDPrefix(name string) string {
	for _, prefix := range cidPrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// runsLike are the runs whose ids begin with a name, whatever its case; a whole id is itself.
func runsLike(ctx context.Context, s engine.Ledger, name string) ([]protocol.RunID, error) {
	heads, err := s.Heads(ctx, protocol.RunHead(""))
	if err != nil {
		return nil, err
	}
	runs := make([]protocol.RunID, len(heads))
	for i, h := range heads {
		runs[i] = protocol.RunOf(h.Name)
	}
	return api.Named(runs, name), nil
}

// BesideTrials is a reference without what trials make of it: for -1, -2 … the id of a run, of which those do not count that sweeps,
// evaluations and bisects made. So one of these that was interrupted is named by the same words.
func (l *Local) BesideTrials(ctx context.Context, text string) (string, error) {
	w, err := api.ReadRef(text)
	if err != nil || w.Latest == 0 {
		return text, nil // Resolve says what is wrong with it
	}
	run, err := latestRun(ctx, l.Setup, l.Store, w, func(run protocol.RunID, began protocol.RunStarted) (bool, error) {
		if kind, _, _ := strings.Cut(began.RequestID, "/"); slices.Contains(trialKinds, kind) && engine.MadeBy(began.RequestID, run) {
			return true, nil
		}
		s, err := l.Engine.State(ctx, run) // of a fork, which begins as its origin did
		return err == nil && s.Info.Trial != "", err
	})
	if err != nil || w.Step == "" {
		return string(run), err
	}
	return string(run) + ":" + w.Step, nil
}

// trialKinds are how the request ids of trials begin.
var trialKinds = []string{"sweep", "eval", "bisect"}

// latestRun finds -1, -2 …; the runs of sub-workflows do not count, nor those that skip tells. The user's own store has the
// runs of all projects: there only those count that were started in this one.
func latestRun(ctx context.Context, u *compose.Setup, s store.Store, w api.Written, skip func(protocol.RunID, protocol.RunStarted) (bool, error)) (protocol.RunID, error) {
	here, err := projectHere(u)
	if err != nil {
		return "", err
	}
	heads, err := s.Newest(ctx)
	if err != nil {
		return "", err
	}
	found := 0
	var elsewhere []string
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		started, err := query.Started(ctx, s, run)
		switch {
		case err != nil:
			return "", err
		case started.Parent != nil:
			continue
		case here != "" && compose.ProjectOf(started.StartedIn()) != here:
			elsewhere = append(elsewhere, fmt.Sprintf("%s in %s", run, started.StartedIn()))
			continue
		case skip != nil:
			skipped, err := skip(run, started)
			if err != nil {
				return "", err
			}
			if skipped {
				continue
			}
		}
		if found++; found == w.Latest {
			if len(elsewhere) > 0 {
				u.Tellf("%s is run %s of %s; newer runs of the store %s belong to other directories: %s", w.Name, run, here, store.Shown(s.Name()), first(elsewhere, 3))
			}
			return run, nil
		}
	}
	runs := protocol.Plural(found, "run")
	if skip != nil {
		runs += " beside those that sweeps, evaluations and bisects made"
	}
	if len(elsewhere) > 0 {
		return "", protocol.ErrUnknownRun.With("name a run by its id; wf ls lists those of all directories",
			"%s: %s of %s in the store %s; newest of other directories: %s", w.Name, runs, here, store.Shown(s.Name()), first(elsewhere, 3))
	}
	return "", protocol.ErrUnknownRun.With("wf ls lists the runs", "%s: %s has %s", w.Name, store.Shown(s.Name()), runs)
}

// first joins the first n of a list.
func first(list []string, n int) string {
	if len(list) > n {
		list = append(slices.Clone(list[:n]), "…")
	}
	return strings.Join(list, ", ")
}

// projectHere is the project whose runs -1 means: that of the current directory in the user's own
// store, "" where the store belongs to one project or was named.
func projectHere(u *compose.Setup) (string, error) {
	_, where, err := u.StoreName()
	if err != nil || where != compose.UsersStore {
		return "", err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the directory: %w", err)
	}
	return compose.ProjectOf(cwd), nil
}
