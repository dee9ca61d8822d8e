package engine

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles/workspace"
)

// Records is what the rules read by read.
func Records(read Reader) rules.Records { return new(library).records(read) }

// DrivenAgrees compares the snapshot that the driver left at the end of a journal with what a
// fold of the journal gives.
func DrivenAgrees(ctx context.Context, e *Engine, run protocol.RunID) error {
	fault, err := e.Refold(ctx, run)
	if fault != nil {
		err = fmt.Errorf("the driver left a state in which %s is\n%s\nand its journal gives\n%s", fault.Field, fault.Stored, fault.Journal)
	}
	return err
}

// Folded is how many events of a run are folded to learn its state: those behind its snapshot.
func Folded(ctx context.Context, e *Engine, run protocol.RunID) (int, error) {
	s, snap, err := e.state(ctx, run)
	if err != nil {
		return 0, err
	}
	return int(s.Seq - snap.seq), nil
}

// RecordsAtRest are the numbers of records that are kept of runs which are not driven.
func RecordsAtRest(e *Engine) map[protocol.RunID]int {
	out := map[protocol.RunID]int{}
	for _, x := range e.pasts.list {
		out[x.run] = x.records.Len()
	}
	return out
}

// ForgetState drops the snapshot of a run.
func ForgetState(ctx context.Context, e *Engine, run protocol.RunID) error {
	return e.DropState(ctx, run)
}

// EditState has the stored state of a run say something else, as an attacker would: it is sealed
// anew.
func EditState(ctx context.Context, e *Engine, run protocol.RunID, edit func(fields map[string]any)) error {
	d, ok, err := e.Store.Derived(ctx, snapshotKey(run))
	if err != nil || !ok {
		return fmt.Errorf("no stored state: %v", err)
	}
	var s map[string]any
	if err := cas.Decode(d.Data, &s); err != nil {
		return err
	}
	edit(s)
	if d.Data, err = cas.Marshal(s); err != nil {
		return err
	}
	return e.Store.Commit(ctx, cas.Batch{Derived: []cas.Derived{d}})
}

// PromptReads is how often the block of a long edge prompt is read for a visit, from the turn by the
// history to the record. What is stored of the state is the same before and after.
func PromptReads(ctx context.Context, e *Engine, run protocol.RunID, step string) (int, error) {
	seq, started, err := e.started(ctx, run, step)
	if err != nil {
		return 0, err
	}
	reads := 0
	read := func(l protocol.Link) ([]byte, error) {
		if l == started.EdgePrompt.Link {
			reads++
		}
		return e.Store.Block(ctx, l)
	}
	s, err := rules.Fold(e.lib.records(read), upTo(e.Store.After(ctx, run, 0), seq))
	if err != nil {
		return 0, err
	}
	before, err := cas.Marshal(s.Snapshot())
	if err != nil {
		return 0, err
	}
	d, x := &driver{e: e, s: s, run: run}, assignment{}
	if err := d.assign(context.Background(), &x, step); err != nil {
		return 0, err
	}
	h, err := e.lib.history(read, &pastCache{}, &x.begun)
	if err != nil {
		return 0, err
	}
	rec, err := s.Record(step, protocol.StepOK)
	if err != nil {
		return 0, err
	}
	if p := x.turn.EdgePrompt; len(p) <= protocol.InlineMax || h.Visit.EdgePrompt != p || rec.EdgePrompt != p {
		return 0, fmt.Errorf("the turn has %.20q, the history %.20q, the record %.20q", p, h.Visit.EdgePrompt, rec.EdgePrompt)
	}
	after, err := cas.Marshal(s.Snapshot())
	if err == nil && !bytes.Equal(before, after) {
		err = fmt.Errorf("the stored state has another form once the prompt was read")
	}
	return reads, err
}

// PartOf is a launch of a run of that name, as a part of another.
func PartOf(x Launch, run protocol.RunID, parent protocol.ParentRun) Launch {
	x.run, x.parent = run, &parent
	return x
}

// SettleAtOnce has files be known as soon as they were read, until restore is called.
func SettleAtOnce() (restore func()) {
	settleTime = 0
	return func() { settleTime = workspace.Settled }
}

// SetOutageGrace has drives that are to end wait for a store that is away for so long, in one test.
func SetOutageGrace(t testing.TB, d time.Duration) {
	was := outageGrace
	outageGrace = d
	t.Cleanup(func() { outageGrace = was })
}
