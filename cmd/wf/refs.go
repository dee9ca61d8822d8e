package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/lazy"
	"wf/service/compose"
	"wf/service/query"
)

// A ref names a run, a step of a run, or a block:
//
//	7K3Q8F2M1A    a run; any unique beginning of it will do
//	-1            the run that moved last, -2 the one before; in the user's own store of this directory
//	-1:coder#2    a step
//	bafyrei…      a block; 6 characters after bafyrei or bafkrei will do, as screens show 8
type ref struct {
	run   protocol.RunID
	step  string        // "" is the whole run
	block protocol.Link // where a block is meant, run is then ""
}

func (r ref) String() string {
	switch {
	case r.block.Defined():
		return r.block.String()
	case r.step != "":
		return string(r.run) + ":" + r.step
	}
	return string(r.run)
}

// cidPart is what may stand for a CID: base32, at least 6 characters of it.
var cidPart = lazy.Regexp(`^[a-z2-7]{6,}$`)

// cidPrefixes is how all CIDs of records and payloads begin.
var cidPrefixes = []string{"bafyrei", "bafkrei"}

// resolve reads a reference of any kind. One that fits nothing is an error wrapping
// ErrUnknownRun or ErrNotFound, one that fits several things wraps ErrAmbiguous and lists them.
func (a *app) resolve(ctx context.Context, s *cas.Store, arg string) (ref, error) {
	arg = written(arg)
	if l, err := protocol.ParseLink(arg); err == nil {
		return ref{block: l}, nil
	}
	name, step, isStep := strings.Cut(arg, ":")
	if isStep {
		id, err := protocol.ParseStepID(step)
		if err != nil {
			return ref{}, usagef("%v; a step is named as in -1:coder#2", err)
		}
		step = id.String()
	}
	if latest().MatchString(name) {
		run, err := a.latestRun(ctx, s, name)
		return ref{run: run, step: step}, err
	}
	runs, err := runsLike(ctx, s, name)
	if err != nil {
		return ref{}, err
	}
	var blocks []protocol.Link
	if part := cutCIDPrefix(name); !isStep && cidPart().MatchString(part) {
		if blocks, err = s.Find(ctx, part); err != nil {
			return ref{}, err
		}
	}
	switch {
	case len(runs) == 1 && (len(blocks) == 0 || strings.EqualFold(string(runs[0]), name)):
		return ref{run: runs[0], step: step}, nil
	case len(runs) == 0 && len(blocks) == 1:
		return ref{block: blocks[0]}, nil
	case len(runs)+len(blocks) > 1:
		return ref{}, ambiguous(name, runs, blocks)
	case strings.HasPrefix(name, "bafy") || strings.HasPrefix(name, "bafk"):
		return ref{}, fail(protocol.ErrNotFound, "", "no block %s in %s", name, s.Dir())
	}
	return ref{}, fail(protocol.ErrUnknownRun, "", "no run %q in %s", name, s.Dir())
}

func cutCIDPrefix(name string) string {
	for _, prefix := range cidPrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// resolveRun reads a reference to a run.
func (a *app) resolveRun(ctx context.Context, s *cas.Store, arg string) (protocol.RunID, error) {
	r, err := a.resolve(ctx, s, arg)
	if err == nil {
		err = r.mustBeRun(arg)
	}
	if err != nil {
		return "", err
	}
	return r.run, nil
}

// mustBeRun is an error of the command line where arg names something else.
func (r ref) mustBeRun(arg string) error {
	switch {
	case r.block.Defined():
		return usagef("%s is a block, a run is wanted; wf ls lists the runs", written(arg))
	case r.step != "":
		return usagef("%s is a step, a run is wanted: %s", written(arg), r.run)
	}
	return nil
}

// resolveStep reads a reference to a step of a run.
func (a *app) resolveStep(ctx context.Context, s *cas.Store, arg string) (ref, error) {
	r, err := a.resolve(ctx, s, arg)
	if err == nil {
		err = r.mustBeStep(arg)
	}
	if err != nil {
		return ref{}, err
	}
	return r, nil
}

// mustBeStep is an error of the command line where arg names something else.
func (r ref) mustBeStep(arg string) error {
	if r.block.Defined() || r.step == "" {
		return usagef("%s names no step; a step is named as in -1:coder#2, and wf show -1 lists them", written(arg))
	}
	return nil
}

// runsLike are the runs whose ids begin with a name, whatever its case; a whole id is itself.
func runsLike(ctx context.Context, s *cas.Store, name string) ([]protocol.RunID, error) {
	heads, err := s.Heads(ctx, protocol.RunHead(""))
	if err != nil || name == "" {
		return nil, err
	}
	var out []protocol.RunID
	for _, h := range heads {
		id := strings.TrimPrefix(h.Name, protocol.RunHead(""))
		if id == name {
			return []protocol.RunID{protocol.RunID(id)}, nil
		}
		if len(id) >= len(name) && strings.EqualFold(id[:len(name)], name) {
			out = append(out, protocol.RunID(id))
		}
	}
	return out, nil
}

// latestRun finds -1, -2 …; the runs of sub-workflows do not count. The user's own store has the
// runs of all projects: there only those count that were started in this one.
func (a *app) latestRun(ctx context.Context, s *cas.Store, name string) (protocol.RunID, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "-"))
	if err != nil || n < 1 {
		return "", usagef("%s: the latest run is -1", name)
	}
	here, err := a.hereOnly()
	if err != nil {
		return "", err
	}
	heads, err := query.Newest(ctx, s)
	if err != nil {
		return "", err
	}
	found := 0
	var elsewhere []string
	for _, h := range heads {
		started, err := query.Started(ctx, s, protocol.RunOf(h.Name))
		if err != nil {
			return "", err
		}
		if started.Parent != nil {
			continue
		}
		if here != "" && compose.ProjectOf(started.StartedIn()) != here {
			elsewhere = append(elsewhere, fmt.Sprintf("%s in %s", protocol.RunOf(h.Name), started.StartedIn()))
			continue
		}
		if found++; found == n {
			if len(elsewhere) > 0 {
				a.progress("%s is run %s of %s; newer runs of the store %s belong to other directories: %s", name, protocol.RunOf(h.Name), here, s.Dir(), first(elsewhere, 3))
			}
			return protocol.RunOf(h.Name), nil
		}
	}
	if len(elsewhere) > 0 {
		return "", fail(protocol.ErrUnknownRun, "name a run by its id; wf ls lists those of all directories",
			"%s: %s of %s in the store %s; newest of other directories: %s", name, protocol.Plural(found, "run"), here, s.Dir(), first(elsewhere, 3))
	}
	return "", fail(protocol.ErrUnknownRun, "wf ls lists the runs", "%s: the store has %s (%s)", name, protocol.Plural(found, "run"), s.Dir())
}

// first joins the first n of a list.
func first(list []string, n int) string {
	if len(list) > n {
		list = append(slices.Clone(list[:n]), "…")
	}
	return strings.Join(list, ", ")
}

// hereOnly is the project whose runs -1 means: that of the current directory in the user's own
// store, "" where the store belongs to one project or was named.
func (a *app) hereOnly() (string, error) {
	_, where, err := a.StoreDir()
	if err != nil || where != compose.UsersStore {
		return "", err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the directory: %w", err)
	}
	return compose.ProjectOf(cwd), nil
}

// ambiguous lists what a reference fits, ten at most.
func ambiguous(name string, runs []protocol.RunID, blocks []protocol.Link) error {
	var names []string
	for _, r := range runs {
		names = append(names, string(r))
	}
	for _, b := range blocks {
		names = append(names, b.String())
	}
	n := len(names)
	if n > 10 {
		names = append(names[:10], "…")
	}
	return fail(protocol.ErrAmbiguous, "", "%q fits %d things: %s", name, n, strings.Join(names, ", "))
}

// shortCID is what screens show of a CID.
func shortCID(cid string) string {
	l, err := protocol.ParseLink(cid)
	if err != nil {
		return cid
	}
	return l.Short()
}
