package engine

import (
	"context"
	"fmt"

	"wf/cas"
	"wf/protocol"
	"wf/roles"
)

// childCalls takes the model calls of a sub-workflow's run over into the journal of its parent,
// where they count in its sums and limits. Each is a usage event of the visit that names the
// one it stands for; so each is taken over once, however often either process dies, and a fold
// of the parent needs no other journal.
type childCalls struct {
	child protocol.RunID
	emit  roles.Emit
	seen  protocol.Seq // of the child: what comes after was not looked at
	gap   bool         // some of that was missed: only catchUp may go on
}

// childCallsOf goes on where the transcript of the visit ends.
func childCallsOf(child protocol.RunID, turn *protocol.Turn, emit roles.Emit) (*childCalls, error) {
	c := &childCalls{child: child, emit: emit}
	for i := range turn.Transcript {
		if turn.Transcript[i].Type != protocol.EvUsage {
			continue
		}
		u, err := cas.DecodeData[protocol.Usage](&turn.Transcript[i].Event)
		if err != nil {
			return nil, err
		}
		if u.Child != nil && u.Child.Run == child { // of another run in a fork
			c.seen = max(c.seen, u.Child.Seq)
		}
	}
	return c, nil
}

// catchUp takes over what the child's journal holds.
func (c *childCalls) catchUp(ctx context.Context, store Store) error {
	seen := c.seen
	var calls []protocol.Data
	for x, err := range store.After(ctx, c.child, c.seen) {
		if err != nil {
			return err
		}
		seen = x.Seq
		if x.Type != protocol.EvUsage {
			continue
		}
		u, err := cas.DecodeData[protocol.Usage](&x.Event)
		if err != nil {
			return fmt.Errorf("run %s, event %d: %w", c.child, x.Seq, err)
		}
		calls = append(calls, c.taken(u, x.Seq))
	}
	if len(calls) > 0 {
		if err := c.emit(ctx, calls...); err != nil {
			return err
		}
	}
	c.seen, c.gap = seen, false
	return nil
}

// follow takes over what the driver of the child stores, as long as the parent's listens. The
// child goes on when the parent has counted it, so that a limit of the parent holds at once.
func (c *childCalls) follow(ctx context.Context) func([]protocol.Entry, []cas.Draft) {
	return func(entries []protocol.Entry, drafts []cas.Draft) {
		if len(entries) == 0 || c.gap || entries[0].Seq != c.seen+1 {
			c.gap = true
			return
		}
		var calls []protocol.Data
		for i := range entries {
			if u, ok := drafts[i].Data.(protocol.Usage); ok {
				calls = append(calls, c.taken(u, entries[i].Seq))
			}
		}
		if len(calls) > 0 && c.emit(ctx, calls...) != nil {
			c.gap = true
			return
		}
		c.seen = entries[len(entries)-1].Seq
	}
}

// taken is the call as the parent counts it.
func (c *childCalls) taken(u protocol.Usage, seq protocol.Seq) protocol.Usage {
	u.Child = &protocol.ChildCall{Run: c.child, Seq: seq}
	return u
}
