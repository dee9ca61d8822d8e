package engine

import (
	"context"
	"fmt"
	"slices"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// advance adds facts together with the starts of the visits that follow from them.
func (d *driver) advance(ctx context.Context, facts []cas.Draft, blocks []cas.Block) error {
	if err := d.add(facts, blocks, nil); err != nil {
		return err
	}
	return d.push(ctx)
}

// append adds the last facts of a drive and returns when they are on disk. Nothing is begun
// any more.
func (d *driver) append(ctx context.Context, facts []cas.Draft, blocks []cas.Block) error {
	d.over, d.last = true, true
	if err := d.add(facts, blocks, nil); err != nil {
		return err
	}
	return d.flush(ctx)
}

// decide adds the starts that follow from the state. What concludes at once, such as an empty fan-out, moves the state, and so the
// rest is decided anew: by that visit the run may have failed. All of it is part of the same commit.
func (d *driver) decide(ctx context.Context, b *batch) error {
	for again := true; again; {
		again = false
		if err := d.converse(b); err != nil {
			return err
		}
		plan, err := d.s.Plan(max(1, d.places(b)))
		if err != nil {
			return err
		}
		d.plan = plan
		d.breach = d.breached(len(plan.Start) > 0)
		if d.breach != nil || d.unready != nil || d.stopping() || ctx.Err() != nil {
			return nil
		}
		for _, x := range plan.Start {
			// Behind the last step that may begin there is a decision again, when something that
			// was begun ends: that one finds the breach.
			if ctx.Err() != nil || d.places(b) <= 0 || d.s.Closing == nil && d.s.Totals.Steps >= d.s.Limits.Steps {
				break
			}
			if err := d.begin(ctx, b, x); err != nil {
				return err
			}
			if d.unready != nil {
				return nil // what has happened is committed all the same
			}
			if again = !slices.Contains(b.begin, x.Step.String()); again {
				break
			}
		}
		if again {
			continue
		}
		if err := d.reopen(b, plan); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) parallel() int {
	if d.e.Parallel > 0 {
		return d.e.Parallel
	}
	return 64
}

// begin adds the start of a new visit.
func (d *driver) begin(ctx context.Context, b *batch, x rules.Decision) error {
	started := protocol.StepStarted{Start: d.s.Start, Parents: x.Parents, Role: x.Role, Visit: x.Visit, Item: x.Item,
		Edge: x.Edge, Via: x.Via, EdgePrompt: protocol.NewText(x.EdgePrompt), Resumes: x.Resumes, Attempt: 1, Of: max(0, x.Of)}
	if x.Item != nil {
		b.payload(d, string(x.ItemValue))
	}
	prep, err := d.prepareFor(ctx, x)
	started.Preparing = prep != nil && !d.inTime(prep)
	if prep != nil && !started.Preparing {
		if err = prep.err; err != nil {
			d.shut(x.Step.String())
		}
	}
	if err != nil && x.Via == protocol.ViaAlways && ctx.Err() == nil {
		if err := b.draft(d, x.Step.String(), started); err != nil {
			return err
		}
		return d.failAlways(b, x.Step.String(), notBegun(err))
	}
	if err != nil {
		d.unready = fmt.Errorf("prepare %s: %w", x.Step, err)
		return nil
	}
	started.Compact = d.s.Compacts(x)
	switch {
	case x.Empty:
	case started.Preparing:
		d.preparing[x.Step.String()] = prep
	case prep != nil:
		err = d.fillIn(b, &started, prep.gives)
	default:
		err = d.fillIn(b, &started, roles.Preparation{})
	}
	if err != nil {
		return err
	}
	if err := b.draft(d, x.Step.String(), started); err != nil {
		return err
	}
	if !x.Empty {
		b.begin = append(b.begin, x.Step.String())
		return nil
	}
	rec, err := d.s.Record(x.Step.String(), protocol.StepSkipped)
	if err != nil {
		return err
	}
	rec.Output = b.payload(d, "[]")
	block, err := cas.Encode(rec)
	if err != nil {
		return err
	}
	b.add(d, block)
	return b.draft(d, x.Step.String(), protocol.StepCompleted{Record: block.Link, Status: protocol.StepSkipped})
}

func (b *batch) add(d *driver, blocks ...cas.Block) {
	d.fresh.add(blocks)
	b.blocks = append(b.blocks, blocks...)
}

// payload adds a text that a record links.
func (b *batch) payload(d *driver, text string) protocol.Link {
	root, blocks := cas.Payload([]byte(text))
	b.add(d, blocks...)
	return root
}

func (b *batch) draft(d *driver, step string, data protocol.Data) error {
	return b.put(d, cas.Draft{Step: step, Data: data}, max(d.e.now(), d.s.TS))
}

// put adds an event, and moves the state by what a fold of the journal will read: the state of
// a run that is driven is the one of a run that is opened again.
func (b *batch) put(d *driver, x cas.Draft, now int64) error {
	x, err := x.Ready()
	if err != nil {
		return err
	}
	x.At = max(now, d.s.TS) // after another process wrote first, not the time of the first try
	d.fresh.add(x.Blocks())
	b.drafts = append(b.drafts, x)
	stored := x.Stored()
	if err := d.s.Apply(x.Step, d.s.Seq+1, x.At, stored.EventType(), stored); err != nil {
		return fmt.Errorf("%s of %s: %w", stored.EventType(), x.Step, err)
	}
	return nil
}

// reopen adds further attempts: of visits that were answered or resumed, that have a retry due,
// or that were cut off when the process before this one ended.
func (d *driver) reopen(b *batch, plan rules.Plan) error {
	busy := map[string]bool{}
	for _, step := range b.begin {
		busy[step] = true
	}
	for _, step := range d.poke {
		busy[step] = true
		if err := d.attempt(b, step); err != nil {
			return err
		}
	}
	d.poke = nil
	open := func(id protocol.StepID) bool { return d.work[id.String()] == nil && !busy[id.String()] }
	for _, x := range plan.Again {
		if open(x.Step) && x.Due <= d.e.now() {
			if err := d.attempt(b, x.Step.String()); err != nil {
				return err
			}
		}
	}
	for _, id := range plan.Running {
		if open(id) {
			if err := d.cutOff(b, id.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt starts a visit again: the same attempt where it was only interrupted.
func (d *driver) attempt(b *batch, step string) error {
	v, err := d.s.Visit(step)
	if err != nil {
		return err
	}
	if v.Anew {
		v.Begun.Attempt++
	}
	b.begin = append(b.begin, step)
	if len(d.s.Inbox) > 0 && (v.Anew || v.Error != "") && !v.Begun.Preparing { // it did not end well: what was said since is for it
		return d.interject(b, step, v.Begun)
	}
	return b.draft(d, step, v.Begun)
}

// cutOff goes on with a visit that was cut off by the end of its process. A command may have acted:
// it is a new attempt, and one that must run only once asks a person, or, as an always role, has failed.
func (d *driver) cutOff(b *batch, step string) error {
	v, err := d.s.Visit(step)
	if err != nil {
		return err
	}
	role, ok := d.s.Program().Workflow.RoleNamed(v.Begun.Role)
	_, waited := d.s.InLine[step]
	switch {
	case waited, v.Reused: // for a slot, or it had taken a result: nothing of it was performed
		return d.attempt(b, step)
	case ok && role.Action == protocol.ActPrompt && len(d.s.Inbox) > 0 && !v.Begun.Preparing:
		b.begin = append(b.begin, step)
		return d.interject(b, step, v.Begun)
	case !ok || role.Action != protocol.ActRun:
		return d.attempt(b, step)
	}
	info := protocol.ErrorInfo{Code: "cut_off", Phase: "run", Message: "wf ended while the command ran"}
	switch {
	case role.Once && v.Begun.Via == protocol.ViaAlways:
		return d.failAlways(b, step, &protocol.Failure{ErrorInfo: info})
	case role.Once:
		return b.draft(d, step, onceQuestion)
	}
	cut := protocol.AttemptFailed{Attempt: v.Begun.Attempt, RetryAt: d.e.now(), Error: info}
	if err := b.draft(d, step, cut); err != nil {
		return err
	}
	return d.attempt(b, step)
}

// The answers to onceQuestion.
const (
	onceAgain = "again"
	onceFail  = "fail"
)

// onceQuestion is asked when a command marked once was cut off.
var onceQuestion = protocol.WaitingFor{Kind: protocol.WaitChoice,
	Question: protocol.NewText("wf ended while this command ran, and it is marked once: it may have acted. Run it again?"),
	Choices:  []protocol.Choice{{Label: "Count it as failed", Value: onceFail, Primary: true}, {Label: "Run it again", Value: onceAgain}}}
