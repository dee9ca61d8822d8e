package engine

import (
	"context"
	"errors"

	"wf/api"
	"wf/engine/rules"
	"wf/protocol"
)

// QueueOf is the place of a queued run, nil for any other: as the group is now, and where the run is not in it, which one
// from another store is not, as the journal says.
func (e *Engine) QueueOf(ctx context.Context, run protocol.RunID, s *rules.State) *api.QueuePlace {
	if s.Status() != protocol.Queued {
		return nil
	}
	q := s.Queue
	behind := make([]string, len(q.Behind))
	for i, r := range q.Behind {
		behind[i] = string(r)
	}
	return e.placeOf(ctx, protocol.Use{Run: run}, &api.QueuePlace{Group: q.Group, Ticket: q.Ticket, Behind: behind})
}

// stepQueue is QueueOf for a step.
func (e *Engine) stepQueue(ctx context.Context, run protocol.RunID, s *rules.State, step string) *api.QueuePlace {
	w, ok := s.InLine[step]
	if !ok {
		return nil
	}
	return e.placeOf(ctx, protocol.Use{Run: run, Step: step}, &api.QueuePlace{Group: w.Group, Ticket: w.Ticket, Behind: append([]string{}, w.Behind...)})
}

// placeOf brings a place up to date. What hinders the look is a warning, and leaves it as it was written.
func (e *Engine) placeOf(ctx context.Context, u protocol.Use, q *api.QueuePlace) *api.QueuePlace {
	g, err := e.group(ctx, q.Group)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			e.warn(err)
		}
		return q
	}
	if ticket := g.Ticket(u); ticket > 0 {
		q.Ticket, q.Behind = ticket, []string{}
		for _, x := range g.Holders() {
			q.Behind = append(q.Behind, x.String())
		}
		for _, c := range g.Group.Group.Queue {
			if c.Ticket < ticket {
				q.Ahead++
			}
		}
	}
	return q
}
