package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

	// RequestID makes a fork once: with one that was used before Fork makes nothing, and gives the fork of then.
	RequestID string
	// Files is a tree that the run recorded: the fork has these files in a directory of its own, in place of Dir. LeftOut
	// is called with each file that it does not get, and why; nil is not.
	Files   protocol.Link
	LeftOut func(what string)
	// Inputs take the place of those of the run, by name; nil leaves them.
	Inputs map[string]any
	Tags   []string // added to those of the run
	Trial  string   // see protocol.RunStarted
	// Messages is how many of the messages that waited there, the oldest first, the fork does not have.
	Messages int

	// Hold has a store that says which runs are due not say so of the fork.
	Hold bool
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
// as with what Admit refuses. It is made in one commit. A fork of a run that came from elsewhere comes from there too, unless
// Elsewhere says otherwise.
func (e *Engine) Fork(ctx context.Context, run protocol.RunID, o ForkOptions) (protocol.RunID, error) {
	find := e.unusedID
	if o.RequestID != "" {
		find = func(ctx context.Context) (protocol.RunID, error) { return e.RunOfRequest(ctx, o.RequestID) }
	}
	id, err := find(ctx)
	if err != nil {
		return "", err
	}
	if o.RequestID != "" {
		if _, _, err := e.Store.Tip(ctx, id); !errors.Is(err, protocol.ErrUnknownRun) {
			return id, err // also of one that was deleted
		}
	}
	if o.Files.Defined() {
		dir, err := e.forkDir(id, 0)
		if err != nil {
			return "", err
		}
		o.Dir = dir
	}
	f, err := e.planFork(ctx, run, o)
	if err != nil {
		return "", err
	}
	drop := func() error { return nil }
	if o.Files.Defined() {
		var left []string
		if left, drop, err = e.layFork(ctx, run, id, 0, o.Files); err != nil {
			return "", fmt.Errorf("fork run %s at event %d: %w", run, o.At, err)
		}
		for _, what := range left {
			if o.LeftOut != nil {
				o.LeftOut(what)
			}
		}
	}
	if err := e.commitFork(ctx, run, id, f); err != nil {
		return "", errors.Join(err, drop())
	}
	return id, nil
}

// commitFork writes the first own events of a fork, which keeps the files that its base has.
func (e *Engine) commitFork(ctx context.Context, run, id protocol.RunID, f plannedFork) error {
	if !f.own && e.Pins != nil {
		if err := cas.MarkArrivals(ctx, e.Store, id); err != nil {
			return err
		}
	}
	j, err := e.Store.Journal(ctx, run)
	if err != nil {
		return err
	}
	files, err := e.Store.Head(ctx, protocol.FilesHead(run))
	if err != nil {
		return fmt.Errorf("the files of run %s: %w", run, err)
	}
	_, err = j.Fork(ctx, max(e.now(), f.at.TS), id, f.at, f.drafts, f.blocks, func(st *cas.Staged) {
		st.Stands(f.standing(id))
		if files.Link.Defined() {
			st.With(cas.Move{Name: protocol.FilesHead(id), New: files.Link, Note: "fork"})
		}
		if f.own {
			e.note(ctx, id, st.First)
		}
	})
	return err
}

// A plannedFork is a fork that may be made.
type plannedFork struct {
	at     protocol.Entry // the newest event that it shares
	drafts []cas.Draft    // its first own events: forked, and limits that are raised
	blocks []cas.Block    // of another definition
	own    bool           // it is the user's own
	state  *rules.State   // behind them
	hold   bool           // it is not to be driven before it is asked for
}

// standing is where the fork is, under its id.
func (f plannedFork) standing(id protocol.RunID) cas.Standing {
	x := begun(Standing(id, f.state))
	if f.hold || !f.own {
		x.Due = 0
	}
	return x
}

// planFork finds out whether a run may be forked, and writes nothing.
func (e *Engine) planFork(ctx context.Context, run protocol.RunID, o ForkOptions) (f plannedFork, err error) {
	if f.at, err = e.entry(ctx, run, o.At); err != nil {
		return f, err
	}
	s, err := e.stateAt(ctx, run, f.at.Seq)
	if err != nil {
		return f, err
	}
	now, err := e.State(ctx, run) // it may be a fork itself, by a later event
	if err != nil {
		return f, err
	}
	note := hider(s.Program()).String(o.Note)
	d := protocol.Forked{Base: f.at.CID, Note: note, By: o.By, Workspace: o.Dir, Models: o.Models, Tags: o.Tags, Origin: cmp.Or(now.Info.Origin, run), Trial: o.Trial, Messages: o.Messages}
	if o.Dir != "" {
		d.Machine = e.Machine
	}
	if o.With != nil || o.Inputs != nil {
		if f.blocks, err = newStart(s, o, &d); err != nil {
			return f, fmt.Errorf("fork run %s: %w", run, err)
		}
	}
	s.ReadFrom(e.lib.records(over(f.blocks, e.reader(ctx))))
	if err := s.Apply("", s.Seq+1, s.TS, d.EventType(), d); err != nil {
		return f, fmt.Errorf("fork run %s at event %d: %w", run, o.At, err)
	}
	f.drafts = []cas.Draft{{Data: d}}
	for _, l := range o.Limits {
		s.Limits = rules.Raised(s.Limits, l)
		f.drafts = append(f.drafts, cas.Draft{Data: l})
	}
	if err := e.admit(Candidate{Program: s.Program(), File: s.Info.File, Workspace: cmp.Or(o.Dir, s.Info.Workspace), Models: s.Info.Models, Limits: s.Limits, Fork: true, Run: run}); err != nil {
		return f, err
	}
	f.state, f.hold = s, o.Hold
	f.own, err = e.ownFork(ctx, run, s, o)
	return f, err
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

// newStart makes the Start under which a fork of s goes on with another definition, or other inputs.
func newStart(s *rules.State, o ForkOptions, d *protocol.Forked) ([]cas.Block, error) {
	given := maps.Clone(s.Opened().Inputs)
	if given == nil {
		given = map[string]any{}
	}
	maps.Copy(given, o.Inputs)
	with := cmp.Or(o.With, s.Program())
	inputs, err := with.Inputs(given)
	if err != nil {
		return nil, fmt.Errorf("its inputs under the new definition: %w", err)
	}
	allowed := slices.DeleteFunc(slices.Clone(s.Info.AllowSecretInputs), func(name string) bool {
		_, declared := with.Workflow.Inputs[name]
		return !declared
	})
	if err := openInputs(with, inputs, allowed); err != nil {
		return nil, err
	}
	begin, err := startOf(with, inputs, protocol.Start{Format: s.FormatOfFork(), Continues: s.Continues()})
	if err != nil {
		return nil, err
	}
	d.Start, d.Source, d.Sources, d.File = begin.start, s.Info.Source, s.Info.Sources, o.File
	var parts, more []cas.Block
	if o.With != nil {
		d.Source, parts = cas.Payload(o.Source)
		d.Sources, more = sourcesOf(with)
	}
	if d.Groups, err = groupsOf(with, inputs, hider(with)); err != nil {
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
