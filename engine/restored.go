package engine

import (
	"context"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// Restored suspends a run of a store that was restored from a backup made at a time, unless it has ended or is suspended.
func (e *Engine) Restored(ctx context.Context, run protocol.RunID, made string) error {
	return e.insist(ctx, run, func(s *rules.State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() || s.Status() == protocol.Suspended {
			return nil, nil, nil
		}
		return []cas.Draft{{Data: protocol.SuspendedBy{Reason: protocol.ByInterrupt, Code: protocol.RestoredCode,
			Detail: protocol.NewText("restored from the backup of " + made + "; what it did since is not known here")}}}, nil, nil
	})
}
