package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
)

// ForkOptions say where a fork begins.
type ForkOptions struct {
	At     protocol.Seq  // the newest event the fork shares
	With   *lang.Program // another definition, or nil
	Source []byte        // its YAML
	File   string
	Dir    string                  // another workspace, or ""
	Models map[string][]string     // other models of roles, "" is every role; nil leaves them
	Limits []protocol.LimitChanged // raised in the fork
	Note   string
	By     string

	// Foreign makes a fork that came from elsewhere, since what it goes on under did: it is shown, and goes on
	// only once it was adopted.
	Foreign bool
	// Elsewhere is asked about a fork of a run that came from elsewhere, which goes on under p in a
	// workspace: whether the fork is the user's own. An error of it is that of Fork. nil: it is as the run.
	Elsewhere func(p *lang.Program, workspace string) (bool, error)
}

// Fork makes a new run that shares another's journal up to an event, and goes on from there.
// It copies nothing and leaves the original as it is. A definition that does not fit what has
// happened is an error wrapping protocol.ErrInvalid or protocol.ErrInputs, and nothing is written;
// as with what Admit refuses. A fork of a run that came from elsewhere comes from there too, unless
// Elsewhere says otherwise.
func (e *Engine) Fork(ctx context.Context, run protocol.RunID, o ForkOptions) (protocol.RunID, error) {
	at, err := e.entry(ctx, run, o.At)
	if err != nil {
		return "", err
	}
	s, err := e.stateAt(ctx, run, at.Seq)
	if err != nil {
		return "", err
	}
	note := hider(s.Program()).String(o.Note)
	d := protocol.Forked{Base: at.CID, Note: note, By: o.By, Workspace: o.Dir, Models: o.Models}
	var blocks []cas.Block
	if o.With != nil {
		if blocks, err = newStart(s, o, &d); err != nil {
			return "", fmt.Errorf("fork run %s: %w", run, err)
		}
	}
	s.ReadFrom(e.lib.records(over(blocks, e.reader(ctx))))
	if err := s.Apply("", s.Seq+1, s.TS, d.EventType(), d); err != nil {
		return "", fmt.Errorf("fork run %s at event %d: %w", run, o.At, err)
	}
	var raised []cas.Draft
	for _, l := range o.Limits {
		s.Limits = rules.Raised(s.Limits, l)
		raised = append(raised, cas.Draft{Data: l})
	}
	if err := e.admit(Candidate{Program: s.Program(), File: s.Info.File, Workspace: cmp.Or(o.Dir, s.Info.Workspace), Models: s.Info.Models, Limits: s.Limits, Fork: true, Run: run}); err != nil {
		return "", err
	}
	own, err := e.ownFork(ctx, run, s, o)
	if err != nil {
		return "", err
	}
	id := newRunID()
	j, err := e.Store.Journal(ctx, run)
	if err != nil {
		return "", err
	}
	now := max(e.now(), at.TS)
	fork, err := j.Fork(ctx, now, id, at, cas.Draft{Data: d}, blocks)
	if err != nil {
		return "", err
	}
	if err := e.shareFiles(ctx, run, id); err != nil {
		return "", fmt.Errorf("the files of run %s, a fork of run %s: %w", id, run, err)
	}
	if len(raised) > 0 {
		if _, err := fork.Append(ctx, now, raised, nil); err != nil {
			return "", fmt.Errorf("raise the limits of run %s, a fork of run %s: %w", id, run, err)
		}
	}
	if own {
		e.note(ctx, id, fork.Head)
	}
	return id, nil
}

// ownFork reports whether a fork of run, with the state s, is the user's own. One of a run that was put back to
// an older copy is: the user has seen what it shares.
func (e *Engine) ownFork(ctx context.Context, run protocol.RunID, s *rules.State, o ForkOptions) (bool, error) {
	err := e.Own(ctx, run)
	switch {
	case o.Foreign:
		return false, nil
	case err == nil, errors.Is(err, protocol.ErrRolledBack):
		return true, nil
	case !errors.Is(err, protocol.ErrForeign):
		return false, err
	case o.Elsewhere == nil:
		return false, nil
	}
	return o.Elsewhere(s.Program(), s.Info.Workspace)
}

// newStart makes the Start under which a fork of s goes on with another definition.
func newStart(s *rules.State, o ForkOptions, d *protocol.Forked) ([]cas.Block, error) {
	inputs, err := o.With.Inputs(s.Opened().Inputs)
	if err != nil {
		return nil, fmt.Errorf("its inputs under the new definition: %w", err)
	}
	allowed := slices.DeleteFunc(slices.Clone(s.Info.AllowSecretInputs), func(name string) bool {
		_, declared := o.With.Workflow.Inputs[name]
		return !declared
	})
	if err := openInputs(o.With, inputs, allowed); err != nil {
		return nil, err
	}
	begin, err := startOf(o.With, inputs, protocol.Start{Format: s.FormatOfFork(), Continues: s.Continues()})
	if err != nil {
		return nil, err
	}
	source, parts := cas.Payload(o.Source)
	sources, more := sourcesOf(o.With)
	d.Start, d.Source, d.Sources, d.File = begin.start, source, sources, o.File
	if d.Groups, err = groupsOf(o.With, inputs, hider(o.With)); err != nil {
		return nil, err
	}
	return slices.Concat(begin.blocks, parts, more), nil
}

// over reads blocks that are not written yet, and all others by read.
func over(blocks []cas.Block, read Reader) Reader {
	return func(l protocol.Link) ([]byte, error) {
		for _, b := range blocks {
			if b.Link == l {
				return b.Data, nil
			}
		}
		return read(l)
	}
}

// entry reads one event.
func (e *Engine) entry(ctx context.Context, run protocol.RunID, seq protocol.Seq) (protocol.Entry, error) {
	for x, err := range e.Store.After(ctx, run, seq-1) {
		return x, err
	}
	return protocol.Entry{}, fmt.Errorf("run %s has no event %d: %w", run, seq, protocol.ErrFutureCursor)
}
