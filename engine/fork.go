package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"wf/cas"
	"wf/engine/lang"
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
	s, err := Fold(&e.lib, upTo(e.Store.After(ctx, run, 0), at.Seq), e.reader(ctx))
	if err != nil {
		return "", fmt.Errorf("run %s: %w", run, err)
	}
	note := hider(s.prog).String(o.Note)
	d := protocol.Forked{Base: at.CID, Note: note, By: o.By, Workspace: o.Dir, Models: o.Models}
	var blocks []cas.Block
	if o.With != nil {
		if blocks, err = s.newStart(o, &d); err != nil {
			return "", fmt.Errorf("fork run %s: %w", run, err)
		}
	}
	s.read = over(blocks, s.read)
	if err := s.forked(&e.lib, d); err != nil {
		return "", fmt.Errorf("fork run %s at event %d: %w", run, o.At, err)
	}
	var raised []cas.Draft
	for _, l := range o.Limits {
		raise(&s.Limits, l)
		raised = append(raised, cas.Draft{Data: l})
	}
	if err := e.admit(Candidate{Program: s.prog, File: s.Info.File, Workspace: cmp.Or(o.Dir, s.Info.Workspace), Models: s.Info.Models, Limits: s.Limits, Fork: true, Run: run}); err != nil {
		return "", err
	}
	own, err := e.ownFork(ctx, run, s, o)
	if err != nil {
		return "", err
	}
	id, err := newRunID()
	if err != nil {
		return "", err
	}
	j, err := e.Store.Journal(ctx, run)
	if err != nil {
		return "", err
	}
	now := max(e.now(), at.TS)
	fork, err := j.Fork(ctx, now, id, at, cas.Draft{Data: d}, blocks)
	if err != nil {
		return "", err
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
func (e *Engine) ownFork(ctx context.Context, run protocol.RunID, s *State, o ForkOptions) (bool, error) {
	err := e.Own(ctx, run)
	switch {
	case err == nil, errors.Is(err, protocol.ErrRolledBack):
		return true, nil
	case !errors.Is(err, protocol.ErrForeign):
		return false, err
	case o.Elsewhere == nil:
		return false, nil
	}
	return o.Elsewhere(s.prog, s.Info.Workspace)
}

// formatOfFork is how the messages of a fork are rendered: as before where a visit has begun,
// whose conversation goes on byte for byte, else in the newest way.
func (s *State) formatOfFork() int {
	if slices.ContainsFunc(s.acts, func(a *act) bool { return a.n != startNode }) {
		return s.begun.start.Format
	}
	return protocol.Format
}

// newStart makes the Start under which a fork of s goes on with another definition.
func (s *State) newStart(o ForkOptions, d *protocol.Forked) ([]cas.Block, error) {
	inputs, err := o.With.Inputs(s.begun.inputs)
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
	var continues []protocol.Link
	for _, a := range s.agenda.tokens {
		if a.n != startNode {
			continues = append(continues, a.records()...)
		}
	}
	blocks, err := o.With.AllBlocks()
	if err != nil {
		return nil, err
	}
	def, err := o.With.Block()
	if err != nil {
		return nil, err
	}
	in, inputParts := cas.Payload(inputs)
	start, err := cas.Encode(protocol.Start{Kind: protocol.KindStart, V: protocol.RecordVersion, Workflow: def.Link, Inputs: in,
		Format: s.formatOfFork(), Semantics: semanticsOf(o.With.Workflow), Continues: continues})
	if err != nil {
		return nil, err
	}
	source, parts := cas.Payload(o.Source)
	sources, more := sourcesOf(o.With)
	d.Start, d.Source, d.Sources, d.File = start.Link, source, sources, o.File
	return slices.Concat(blocks, parts, more, inputParts, []cas.Block{start}), nil
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

// forked clears what stopped the original. Under another definition the open tokens are offered
// anew: edges are counted from zero there, roles by their names. A visit that is under way goes
// on, and belongs to the edge that leads there now.
func (s *State) forked(lib *Library, d protocol.Forked) error {
	s.stop, s.result = nil, protocol.Link{}
	s.Info.Forked = d.Base
	if d.Models != nil {
		s.Info.Models = d.Models
	}
	if d.Workspace != "" {
		s.Info.Workspace = d.Workspace
	}
	if !d.Start.Defined() {
		return nil
	}
	o, err := lib.open(d.Start, s.read)
	if err != nil {
		return err
	}
	if d.File != "" {
		s.Info.File = d.File
	}
	s.Info.Source, s.Info.Sources = d.Source, d.Sources
	before := s.prog.Workflow
	s.Start, s.prog, s.begun = d.Start, o.prog, o
	for _, a := range s.acts {
		a.edges = make([]int, len(o.prog.Workflow.Edges))
		if a.n == startNode {
			a.links = []protocol.Link{d.Start}
		}
	}
	for _, a := range slices.Clone(s.agenda.tokens) {
		s.offers(a, a.token(a.offer.failed, s.equalItems()))
	}
	for _, a := range s.acts {
		if !a.open() {
			a.edge = noEdge
		} else if err := s.transplant(a, before); err != nil {
			return err
		}
	}
	return nil
}

// transplant has an activation that is under way go on under the definition in force, as if it
// had come by the edge there that is like its own.
func (s *State) transplant(a *act, before *protocol.Workflow) error {
	edge := noEdge
	var was *protocol.Edge
	if a.edge >= 0 && a.edge < len(before.Edges) {
		was = &before.Edges[a.edge]
		edge = s.edgeLike(was, a)
	}
	if edge == noEdge {
		return fmt.Errorf("%s is under way, and no edge of the new definition leads to %s as the old one did: %w", a.name(), a.role,
			&protocol.Error{Code: protocol.ErrInvalid.Code, Message: protocol.ErrInvalid.Message, Hint: "keep the role and that edge, or fork at a step before " + a.name()})
	}
	a.edge, a.fan = edge, nil
	if a.via != protocol.ViaLimit {
		a.edges[edge]++
	}
	if slices.Contains(a.parents, startNode) {
		a.links = []protocol.Link{s.Start}
	}
	for _, v := range a.visits {
		if v != nil && (v.mode == runs || v.mode == retries || v.mode == parked) {
			s.to(v, ready, v.due)
		}
	}
	var sources []*act // whose tokens other targets of the old edge still wait for
	for _, n := range a.parents {
		if p := s.act(n); p != nil && p.offer != nil && !p.offer.closed {
			sources = append(sources, p)
		}
	}
	if len(sources) == 0 {
		return nil
	}
	return s.settle(firing{edge: edge, sources: sources}, a.role)
}

// edgeLike finds the edge of the definition in force that leads to a as was did: the one that
// says the same, else the first with the same ends.
func (s *State) edgeLike(was *protocol.Edge, a *act) int {
	found := noEdge
	for i := range s.prog.Workflow.Edges {
		e := &s.prog.Workflow.Edges[i]
		leads := slices.Contains(e.To, a.role)
		if a.via == protocol.ViaLimit {
			leads = e.OnLimit == a.role
		} else if e.ForEach != was.ForEach {
			continue // a fan-out goes on over the same items
		}
		if !leads || !slices.Equal(e.From, was.From) || e.OnFailure != was.OnFailure {
			continue
		}
		if e.When == was.When {
			return i
		}
		if found == noEdge {
			found = i
		}
	}
	return found
}
