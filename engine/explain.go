package engine

import (
	"context"

	"wf/engine/rules"
	"wf/protocol"
)

// Explain decides again how a step came about.
func (e *Engine) Explain(ctx context.Context, run protocol.RunID, step string) (*rules.Why, error) {
	seq, d, err := e.started(ctx, run, step)
	if err != nil {
		return nil, err
	}
	s, err := rules.Fold(e.records(ctx), upTo(e.Store.After(ctx, run, 0), seq-1))
	if err != nil {
		return nil, err
	}
	return s.Explain(step, d)
}
