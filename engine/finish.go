package engine

import (
	"context"
	"fmt"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// finish records how the run stops. A run that only waits has nothing to record.
func (d *driver) finish(ctx context.Context, v *rules.Verdict) error {
	quiet := context.WithoutCancel(ctx)
	switch v.Status {
	case protocol.Done, protocol.Failed:
		last, blocks, err := d.finished(v)
		if err != nil {
			return err
		}
		return d.append(quiet, []cas.Draft{last}, blocks)
	case protocol.Suspended:
		return d.append(quiet, []cas.Draft{{Data: protocol.SuspendedBy{Reason: v.Reason, Detail: protocol.NewText(v.Detail), Code: v.Code}}}, nil)
	}
	return nil
}

// finished is the last event, with its Result.
func (d *driver) finished(v *rules.Verdict) (last cas.Draft, blocks []cas.Block, err error) {
	res := protocol.Result{Kind: protocol.KindResult, V: protocol.RecordVersion, Start: d.s.Start, Parents: v.Parents, Status: v.Status}
	if len(v.Outputs) > 0 {
		root, parts := cas.Payload(v.Outputs)
		res.Outputs, blocks = root, append(blocks, parts...)
	}
	block, err := cas.Encode(res)
	if err != nil {
		return last, nil, fmt.Errorf("result: %w", err)
	}
	return cas.Draft{Data: protocol.Finished{Status: v.Status, Result: block.Link}}, append(blocks, block), nil
}

// breached reports the limit that forbids to go on; of steps only when more of them wait.
func (d *driver) breached(more bool) *rules.Breach {
	var cost int64
	if d.s.Limits.Cost > 0 {
		_, cost = d.e.Cost(d.s.Totals)
	}
	return d.s.Breached(d.e.now(), cost, more)
}

// suspend records a breach.
func (d *driver) suspend(ctx context.Context, b rules.Breach) error {
	return d.append(context.WithoutCancel(ctx), []cas.Draft{
		{Data: protocol.LimitReached{Limit: b.Limit, Value: b.Value, Max: b.Max}},
		{Data: protocol.SuspendedBy{Reason: protocol.ByLimit, Detail: protocol.NewText(inWords(b))}},
	}, nil)
}

// inWords says what was reached, and how to go on.
func inWords(b rules.Breach) string {
	value, most := fmt.Sprint(b.Value), fmt.Sprint(b.Max)
	if b.Limit == rules.LimitDuration {
		value = (time.Duration(b.Value) * time.Microsecond).Round(time.Millisecond).String()
		most = (time.Duration(b.Max) * time.Microsecond).String()
	}
	if b.Limit == rules.LimitCost {
		value, most = fmt.Sprintf("$%.4f", float64(b.Value)/1e6), fmt.Sprintf("$%.4f", float64(b.Max)/1e6)
	}
	return fmt.Sprintf("limits.%s reached: %s of %s; raise it with wf resume --limit %s=…", b.Limit, value, most, b.Limit)
}
