package compose

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"wf/agentkit/memory"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/notify"
	"wf/store"
)

// Refold holds what a store keeps of its runs and memories, so as not to read their whole journals each
// time, against these journals: a finding for each that says something else. With drop set they are
// removed in the place of findings; the next look makes them anew.
func (u *Setup) Refold(ctx context.Context, s store.Store, r *cas.Report, drop bool) error {
	e := &engine.Engine{Store: s}
	for _, h := range r.Heads {
		var found *cas.Finding
		var err error
		switch scope, isMemory := strings.CutPrefix(h.Name, protocol.MemoryHead("")); {
		case isMemory:
			found, err = u.refoldMemory(ctx, s, scope)
		case strings.HasPrefix(h.Name, protocol.NotifyHead("")):
			found, err = refoldSink(ctx, s, strings.TrimPrefix(h.Name, protocol.NotifyHead("")))
		case strings.HasPrefix(h.Name, protocol.RunHead("")):
			found, err = refoldRun(ctx, e, protocol.RunOf(h.Name))
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // a journal that this wf cannot fold says nothing of the state
			r.NotProven = append(r.NotProven, fmt.Sprintf("the stored state of %s: %v", h.Name, err))
		case found == nil:
		case drop:
			if err := dropState(ctx, s, e, h); err != nil {
				return fmt.Errorf("%s: %w", found.Where, err)
			}
			u.Tellf("%s differed from its journal and was dropped; it is made anew", found.Where)
		default:
			r.OK = false
			r.Findings = append(r.Findings, *found)
		}
	}
	return nil
}

func refoldRun(ctx context.Context, e *engine.Engine, run protocol.RunID) (*cas.Finding, error) {
	f, err := e.Refold(ctx, run)
	if f == nil || err != nil {
		return nil, err
	}
	return stateFinding(fmt.Sprintf("run/%s/%d/state", run, f.Seq), f.Field, f.Journal, f.Stored, string(run)), nil
}

func (u *Setup) refoldMemory(ctx context.Context, s store.Store, scope string) (*cas.Finding, error) {
	m, err := cas.OpenMemory(s, scope)
	if err != nil {
		return nil, err
	}
	j := memoryJournal{m, s, scope, u.Warn}
	d, _, err := s.Derived(ctx, protocol.MemoryHead(scope))
	if err != nil || !d.Head.Defined() {
		return nil, err
	}
	f, err := memory.Refold(ctx, j, d.Data, d.Head)
	if f == nil || err != nil {
		return nil, err
	}
	return stateFinding(fmt.Sprintf("memory/%s/%d/state", scope, f.Seq), f.What, f.Journal, f.Kept, "--all"), nil
}

func refoldSink(ctx context.Context, s store.Store, name string) (*cas.Finding, error) {
	seq, same, err := notify.Refold(ctx, s, name)
	if same || err != nil {
		return nil, err
	}
	return stateFinding(fmt.Sprintf("notify/%s/%d/state", name, seq), "the deliveries", "others", "differ from that", "--all"), nil
}

// stateFinding is a stored state that differs from its journal in what.
func stateFinding(where, what, journal, stored, of string) *cas.Finding {
	return &cas.Finding{Kind: "state", Where: where, Expected: what + " by the journal: " + journal, Actual: what + " as stored: " + stored,
		Fix: fmt.Sprintf("wf verify %s --mend drops the stored state; it is made anew from the journal", of)}
}

func dropState(ctx context.Context, s store.Store, e *engine.Engine, h cas.Head) error {
	if strings.HasPrefix(h.Name, protocol.MemoryHead("")) || strings.HasPrefix(h.Name, protocol.NotifyHead("")) {
		return s.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: h.Name}}})
	}
	return e.DropState(ctx, protocol.RunOf(h.Name))
}

// RefoldDir is Refold of the store in a directory.
func (u *Setup) RefoldDir(ctx context.Context, dir string, r *cas.Report, drop bool) error {
	s, err := cas.Open(ctx, dir, cas.Options{MustExist: true, ReadOnly: !drop, AnyOwner: true, Warn: u.Warn, Seal: u.Seal()})
	if err != nil {
		return err
	}
	return errors.Join(u.Refold(ctx, s, r, drop), s.Close())
}
