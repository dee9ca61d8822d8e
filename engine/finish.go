package engine

import (
	"context"
	"fmt"
	"time"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// finish records how the run stops. A run that only waits has nothing to record; one that closes goes on.
func (d *driver) finish(ctx context.Context, v *rules.Verdict) (goesOn bool, err error) {
	quiet := context.WithoutCancel(ctx)
	switch {
	case v.Status == protocol.Done, v.Status == protocol.Failed, d.s.Closing != nil && v.Status == protocol.Cancelled:
		x, blocks, last, err := d.ending(v)
		if err != nil {
			return false, err
		}
		if !last {
			return true, d.advance(ctx, []cas.Draft{x}, blocks)
		}
		d.e.over(d.run)
		err = d.append(quiet, []cas.Draft{x}, blocks)
		return err == nil && d.ended(ctx), err
	case v.Status == protocol.Suspended:
		err = d.append(quiet, []cas.Draft{{Data: protocol.SuspendedBy{Reason: v.Reason, Detail: protocol.NewText(v.Detail), Code: v.Code}}}, nil)
		return err == nil && d.ended(ctx), err
	}
	return false, nil
}

// result is the Result of the run, with the outputs in it.
func (d *driver) result(v *rules.Verdict) (result, outputs protocol.Link, blocks []cas.Block, err error) {
	res := protocol.Result{Kind: protocol.KindResult, V: protocol.RecordVersion, Start: d.s.Start, Parents: v.Parents, Status: v.Status}
	if len(v.Outputs) > 0 {
		root, parts := cas.Payload(v.Outputs)
		res.Outputs, blocks = root, append(blocks, parts...)
	}
	block, err := cas.Encode(res)
	if err != nil {
		return result, outputs, nil, fmt.Errorf("result: %w", err)
	}
	return block.Link, res.Outputs, append(blocks, block), nil
}

// breached reports the limit that forbids to go on; of steps only when more of them wait.
func (d *driver) breached(more bool) *rules.Breach {
	var cost int64
	if d.s.Limits.Cost > 0 {
		_, cost = d.e.Cost(d.s.Totals)
	}
	return d.s.Breached(d.e.now(), cost, d.down.lasted(d.e.now()), more)
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
	if b.Estimated > 0 {
		most += fmt.Sprintf(", %d of which are an estimate, since a provider reports no usage", b.Estimated)
	}
	return fmt.Sprintf("limits.%s reached: %s of %s; raise it with wf resume --limit %s=…", b.Limit, value, most, b.Limit)
}
