package engine

import (
	"context"
	"fmt"
	"time"

	"wf/cas"
	"wf/protocol"
)

// finish records how the run stops. A run that only waits has nothing to record.
func (d *driver) finish(ctx context.Context, v *Verdict) error {
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
func (d *driver) finished(v *Verdict) (last cas.Draft, blocks []cas.Block, err error) {
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

// breach is a limit of the run that was reached.
type breach struct {
	limit      string
	value, max int64
}

// The names of the limits of a run.
const (
	limitSteps    = "steps"
	limitDuration = "duration"
	limitTokens   = "tokens"
	limitCost     = "cost_usd"
)

// picoPerMicro is how many pico-dollars a micro-dollar has.
const picoPerMicro = 1_000_000

// breached reports the limit that forbids to go on; of steps only when more of them wait.
func (d *driver) breached(more bool) *breach {
	t, l := d.s.Totals, d.s.Limits
	if l.Cost > 0 {
		// What has no price is not counted: a limit cannot hold what nobody knows.
		if _, least := d.e.Cost(t); least >= l.Cost*picoPerMicro {
			return &breach{limitCost, least / picoPerMicro, l.Cost}
		}
	}
	switch {
	case l.Tokens > 0 && t.Input+t.Output >= l.Tokens:
		return &breach{limitTokens, t.Input + t.Output, l.Tokens}
	case l.Duration > 0 && d.activeTime() >= l.Duration:
		return &breach{limitDuration, d.activeTime(), l.Duration}
	case more && l.Steps > 0 && t.Steps >= l.Steps:
		return &breach{limitSteps, int64(t.Steps), int64(l.Steps)}
	}
	return nil
}

// activeTime is Totals.Active up to now.
func (d *driver) activeTime() int64 {
	if !d.s.active {
		return d.s.Totals.Active
	}
	return d.s.Totals.Active + max(0, d.e.now()-d.s.TS)
}

// suspend records a breach.
func (d *driver) suspend(ctx context.Context, b breach) error {
	return d.append(context.WithoutCancel(ctx), []cas.Draft{
		{Data: protocol.LimitReached{Limit: b.limit, Value: b.value, Max: b.max}},
		{Data: protocol.SuspendedBy{Reason: protocol.ByLimit, Detail: protocol.NewText(b.String())}},
	}, nil)
}

// String says what was reached, and how to go on.
func (b breach) String() string {
	value, most := fmt.Sprint(b.value), fmt.Sprint(b.max)
	if b.limit == limitDuration {
		value = (time.Duration(b.value) * time.Microsecond).Round(time.Millisecond).String()
		most = (time.Duration(b.max) * time.Microsecond).String()
	}
	if b.limit == limitCost {
		value, most = fmt.Sprintf("$%.4f", float64(b.value)/1e6), fmt.Sprintf("$%.4f", float64(b.max)/1e6)
	}
	return fmt.Sprintf("limits.%s reached: %s of %s; raise it with wf resume --limit %s=…", b.limit, value, most, b.limit)
}

// raise changes a limit.
func raise(l *protocol.Limits, d protocol.LimitChanged) {
	switch d.Limit {
	case limitSteps:
		l.Steps = int(d.Max)
	case limitDuration:
		l.Duration = d.Max
	case limitTokens:
		l.Tokens = d.Max
	case limitCost:
		l.Cost = d.Max
	}
}
