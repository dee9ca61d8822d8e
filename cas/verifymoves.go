package cas

import (
	"context"
	"fmt"
	"strings"

	"wf/protocol"
)

// moves holds a head and its chain against the reflog.
func (v *Verifier) moves(h Head, chain []chainEvent, at map[blockName]protocol.Seq, noted *Moves, whole bool) {
	moves := noted.Lines
	if noted.Whole {
		v.holes(h, chain, noted)
	}
	if len(moves) == 0 {
		v.doubt("%s: its reflog is lost, so it does not show whether the head was moved back", where(h.Name, 0, ""))
		return
	}
	v.report.Checked.Moves += int64(len(moves))
	if moves[0].Old.Defined() || moves[0].Cut {
		v.doubt("%s: its reflog begins at %d; earlier moves are not shown", where(h.Name, 0, ""), moves[0].Seq)
	}
	for i := 1; i < len(moves); i++ {
		if moves[i].Cut || moves[i].Old != moves[i-1].New {
			v.doubt("%s: its reflog has a hole before %d", where(h.Name, 0, ""), moves[i].Seq)
		}
	}
	if last := moves[len(moves)-1]; last.New != h.Link {
		kind := "head_moved"
		if h.Seq < last.Seq {
			kind = "rolled_back"
		}
		v.find(Finding{Kind: kind, Where: where(h.Name, last.Seq, "head"), Expected: last.New.String(), Actual: h.Link.String(), Fix: restoreFix})
	}
	if !whole {
		return
	}
	forked := false
	for _, c := range chain {
		forked = forked || c.node.event.typ == protocol.EvForked
	}
	for _, m := range moves[:len(moves)-1] {
		if n, ok := nameOf(m.New); ok && at[n] == 0 && !forked && m.Seq <= h.Seq {
			v.find(Finding{Kind: "rewritten", Where: where(h.Name, m.Seq, "reflog"), Expected: m.New.String() + " in the chain, or a forked event",
				Actual: eventAt(chain, m.Seq), Fix: restoreFix})
		}
	}
}

// holes finds the moves, and the names of events, that are missing in a reflog which has all of them.
func (v *Verifier) holes(h Head, chain []chainEvent, noted *Moves) {
	last := ReflogLine{}
	for _, m := range noted.Lines {
		if from := fmt.Sprintf(", from %s", m.Old); m.N != last.N+1 && (m.Old.Defined() || m.Cut) { // a head that was dropped and came again has counted that too
			if m.Cut {
				from = ""
			}
			v.Fault("reflog_hole", h.Name, m.Seq, "reflog", fmt.Sprintf("move %d, from %s", last.N+1, orNone(last.New)), fmt.Sprintf("move %d%s", m.N, from))
		}
		last = m
	}
	if len(noted.Lines) == 0 {
		v.Fault("reflog_hole", h.Name, h.Seq, "reflog", "a move to "+h.Link.String(), "no move")
	}
	v.named(h, chain, noted, h.Seq)
}

// named finds the first of the events up to end that a reflog does not name, of those that a fork does not share with its base. Those
// next to it are gone with the same move.
func (v *Verifier) named(h Head, chain []chainEvent, noted *Moves, end protocol.Seq) {
	for _, c := range chain {
		if c.seq > noted.Shared && c.seq <= end && !noted.Events[c.seq].Defined() {
			v.Fault("reflog_hole", h.Name, c.seq, "reflog", c.name.String()+" in "+noted.In, "nothing")
			return
		}
	}
}

// bases checks what the reflogs of runs that were deleted have for a fork of them: its first events are read by those.
func (v *Verifier) bases(ctx context.Context, h Head, chain []chainEvent, noted *Moves) error {
	for seen := map[string]bool{h.Name: true}; noted.Whole && noted.Base != "" && !v.keeps[noted.Base] && !seen[noted.Base]; {
		seen[noted.Base] = true
		end := noted.Shared
		var err error
		if noted, err = v.evidence.Moves(ctx, Head{Name: noted.Base}); err != nil {
			return err
		}
		noted.Shared = min(noted.Shared, end)
		v.named(h, chain, noted, end)
	}
	return nil
}

// eventAt is the CID of the event at seq.
func eventAt(chain []chainEvent, seq protocol.Seq) string {
	for _, c := range chain {
		if c.seq == seq {
			return c.name.String()
		}
	}
	return "no event"
}

// pinned holds a chain against what was noted outside of the store.
func (v *Verifier) pinned(ctx context.Context, h Head, chain []chainEvent, at map[blockName]protocol.Seq, whole bool) {
	check := func(want Seen, what, fix string) {
		n, ok := nameOf(want.Head)
		if ok && at[n] > 0 || want.Head == h.Link {
			return
		}
		if !whole {
			v.doubt("%s: the %s %s cannot be looked for behind the fault", where(h.Name, want.Seq, ""), what, want.Head)
			return
		}
		if nd, err := v.g.get(ctx, n); ok && want.Seq == 0 && err == nil && nd.event != nil {
			want.Seq = nd.event.seq
		}
		f := Finding{Kind: "rewritten", Where: where(h.Name, want.Seq, "head"), Expected: "the " + what + " " + want.Head.String(),
			Actual: eventAt(chain, want.Seq), Fix: fix}
		if h.Seq < want.Seq || want.Seq == 0 {
			f.Kind, f.Actual = "rolled_back", h.Link.String()
		}
		v.find(f)
	}
	if n, _ := nameOf(v.o.Head); v.o.Head.Defined() && (v.alone || at[n] > 0) {
		check(Seen{Head: v.o.Head}, "given head", restoreFix)
		v.settled = true
	}
	seen, ok := v.known[h.Name]
	switch {
	case ok:
		check(seen, "last seen head", seenFix)
	case !v.o.LastSeen.Empty() && strings.HasPrefix(h.Name, "run/"):
		v.doubt("%s: this run was not seen before", where(h.Name, 0, ""))
	}
}
