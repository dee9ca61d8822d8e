package engine

import (
	"context"
	"fmt"
	"slices"

	"wf/api"
	"wf/protocol"
)

// backwards reads a journal from its end towards its start, as far as it is asked for.
type backwards struct {
	ctx   context.Context
	e     *Engine
	run   protocol.RunID
	from  protocol.Seq // what follows was read
	ended map[protocol.Link]ending
	begun map[string]protocol.StepStarted
}

type ending struct {
	step string
	d    protocol.StepCompleted
}

func (e *Engine) backwards(ctx context.Context, run protocol.RunID, from protocol.Seq) *backwards {
	return &backwards{ctx, e, run, from, map[protocol.Link]ending{}, map[string]protocol.StepStarted{}}
}

// read takes in the events before those that were read.
func (b *backwards) read() error {
	part, err := b.e.before(b.ctx, b.run, b.from)
	if err != nil {
		return err
	}
	b.from = max(0, b.from-backStep)
	for _, x := range slices.Backward(part) {
		data, err := dataOf(&x, protocol.EvStepStarted, protocol.EvStepCompleted)
		if err != nil {
			return fmt.Errorf("run %s: %w", b.run, err)
		}
		switch d := data.(type) {
		case protocol.StepStarted:
			b.begun[x.StepName()] = d
		case protocol.StepCompleted:
			b.ended[d.Record] = ending{x.StepName(), d}
		}
	}
	return nil
}

// Ended implements rules.Past.
func (b *backwards) Ended(record protocol.Link) (string, protocol.StepCompleted, error) {
	for {
		if x, ok := b.ended[record]; ok || b.from == 0 {
			return x.step, x.d, nil
		}
		if err := b.read(); err != nil {
			return "", protocol.StepCompleted{}, err
		}
	}
}

// Begun implements rules.Past.
func (b *backwards) Begun(step string) (protocol.StepStarted, error) {
	for {
		if d, ok := b.begun[step]; ok {
			return d, nil
		}
		if b.from == 0 {
			return protocol.StepStarted{}, fmt.Errorf("run %s has no step %s: %w", b.run, step, protocol.ErrCorrupt)
		}
		if err := b.read(); err != nil {
			return protocol.StepStarted{}, err
		}
	}
}

// because says of a run that failed with which step the way to FAIL began. What it costs depends on the events since that step.
func (b *viewer) because(ctx context.Context) error {
	c, err := b.s.Cause(b.e.backwards(ctx, b.v.ID, b.s.Seq))
	if c == nil || err != nil {
		return err
	}
	b.v.Cause = &api.Cause{Step: c.Step, Failed: c.Failed, Way: c.Way, Road: append([]string{}, c.Road...)}
	if !c.Failed {
		return nil
	}
	p, err := loadPast(&b.e.lib, b.read, c.Record)
	if err != nil {
		return err
	}
	message := ""
	if b.v.Cause.Error = p.Error; p.Error != nil {
		message = p.Error.Message
	}
	b.v.Reason = c.Because(message, b.v.Reason)
	return nil
}
