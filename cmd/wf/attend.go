package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wf/api"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// attend follows a run from an event on until it stops, and ends as it did. A person at the terminal is asked what
// the run asks, unless --no-input. Where the run was moved here, it is driven by this.
func (a *app) attend(ctx context.Context, p *target, run protocol.RunID, from protocol.Seq) error {
	failed := a.followAndAsk(ctx, p, run, from, a.Reporter)
	if p.here == nil && failed != nil || errors.Is(failed, protocol.ErrRunLive) || errors.Is(failed, protocol.ErrUnknownRun) {
		return failed
	}
	a.Settle()
	a.notify(ctx, p, run)
	v, err := a.shown(context.WithoutCancel(ctx), p, run) // an interrupted run is shown too
	if err == nil {
		err = a.ShowOutcome(v)
	}
	if err != nil {
		return errors.Join(failed, err)
	}
	var sig signalled
	switch {
	case failed != nil && errors.As(context.Cause(ctx), &sig):
		hint, state := "wf resume "+string(run), "is suspended"
		if v.Status == protocol.Waiting {
			hint, state = render.Next(v), "waits"
		}
		return interrupted{errRunSuspended.With(hint, "%s; run %s %s, nothing is lost", sig, run, state), sig}
	case failed != nil:
		return failed
	}
	return outcome(v)
}

// notify delivers the notifications of a run that was driven here, and says how many are left. What goes wrong with
// that is nothing of the run.
func (a *app) notify(ctx context.Context, p *target, run protocol.RunID) {
	if p.here == nil {
		return
	}
	left, err := p.here.Notify(ctx, run)
	if err != nil {
		a.Warn(fmt.Errorf("notifications: %w", err))
	}
	if left > 0 {
		verb := "waits"
		if left > 1 {
			verb = "wait"
		}
		a.Progress("%s %s for wf serve (wf hook ls)", protocol.Plural(left, "notification"), verb)
	}
}

// tell shows how a run is now.
func (a *app) tell(ctx context.Context, p *target, run protocol.RunID) error {
	v, err := a.shown(ctx, p, run)
	if err != nil {
		return err
	}
	return a.ShowOutcome(v)
}

// tellEnd shows a run that stopped, and ends as it did.
func (a *app) tellEnd(v *api.Run) error { return errors.Join(a.ShowOutcome(v), outcome(v)) }

// interrupted is a run that a signal suspended.
type interrupted struct {
	error
	sig signalled
}

func (i interrupted) Unwrap() []error { return []error{i.sig, i.error} }

// followAndAsk follows a run until it stops and the user does not help it on.
func (a *app) followAndAsk(ctx context.Context, p *target, run protocol.RunID, from protocol.Seq, reporter func(render.Backdrop) render.Reporter) error {
	for {
		if err := a.follow(ctx, p, run, from, reporter); err != nil {
			return err
		}
		if !a.interactive() || a.AsJSON() {
			return nil
		}
		v, err := p.Run(ctx, run, api.Window{Limit: lastSteps})
		if err != nil {
			return err
		}
		asked, err := a.person.Ask(ctx, v, "", func(ctx context.Context, x api.Answer) error {
			_, err := p.Answer(ctx, run, x)
			return err
		})
		if err != nil || !asked {
			return err
		}
		if from = v.Seq; p.here != nil {
			p.here.GoOn(run) // another user may have answered, and left the run to this process
		}
	}
}

// follow shows a run from an event on until it waits, is suspended or has ended.
func (a *app) follow(ctx context.Context, p *target, run protocol.RunID, from protocol.Seq, reporter func(render.Backdrop) render.Reporter) error {
	b, err := a.backdrop(ctx, p, run)
	if err != nil {
		return err
	}
	if b.Fold != nil && from > 0 && !a.Quiet && !a.AsJSON() && slices.ContainsFunc(b.Edges, func(e protocol.Edge) bool { return e.ForEach != "" }) {
		// A fan-out may go on that began before: what has ended of it counts.
		if err := p.Follow(ctx, run, api.Following{To: from}, func(u api.Update) error { b.Saw(u); return nil }); err != nil {
			return err
		}
	}
	rep := reporter(b)
	defer rep.Close()
	line := a.watchLine(ctx, p, run)
	defer line.close()
	return p.Follow(ctx, run, api.Following{From: from, Until: api.Parked}, a.showing(ctx, p, func(u api.Update) error {
		rep.Notice(u)
		line.saw(u)
		return nil
	}))
}

// showing is what Follow calls: it tells remarks, and hands on everything else whole.
func (a *app) showing(ctx context.Context, p *target, show func(api.Update) error) func(api.Update) error {
	return func(u api.Update) error {
		switch {
		case u.Remark != "":
			a.Progress("%s", render.OneLine(u.Remark, 300))
			return nil
		case u.Idle != "":
			return a.tellIdle(ctx, p, u)
		}
		return show(u)
	}
}

// tellIdle says that no process drives a run that is followed.
func (a *app) tellIdle(ctx context.Context, p *target, u api.Update) error {
	v, err := p.Run(ctx, u.Run, api.Window{Limit: 1})
	if err != nil {
		return err
	}
	state := render.State{Status: v.Status, Idle: u.Idle, Closing: v.Closing}
	a.Progress("%s: %s; %s goes on with it", state.Word(), state.Why(), render.ResumeCommand(v))
	return nil
}

// backdrop is what reporters look up of a run.
func (a *app) backdrop(ctx context.Context, p *target, run protocol.RunID) (render.Backdrop, error) {
	_, w, err := workflowOf(ctx, p, run)
	if err != nil {
		return render.Backdrop{}, err
	}
	b := render.Backdrop{Context: context.WithoutCancel(ctx), Blocks: p.Blocks, Edges: w.Edges, Fold: a.NewFolder(), Guest: p.here == nil, Commands: a.Commands}
	if p.here != nil {
		if prices, err := a.Prices(); err == nil { // else nothing is said of costs here
			b.Price = prices.Cost
		}
	}
	return b, nil
}

// workflowOf is the workflow of a run.
func workflowOf(ctx context.Context, p *target, run protocol.RunID) (def protocol.Link, w protocol.Workflow, err error) {
	v, err := p.Run(ctx, run, api.Window{Limit: 1})
	if err != nil {
		return def, w, err
	}
	if def, err = protocol.ParseLink(v.Definition); err != nil {
		return def, w, err
	}
	raw, err := p.Block(ctx, def)
	if err == nil {
		err = cas.Decode(raw, &w)
	}
	if err != nil {
		err = fmt.Errorf("definition %s: %w", def, err)
	}
	return def, w, err
}

// headline says what goes on now.
func (a *app) headline(ctx context.Context, p *target, run protocol.RunID) error {
	if a.AsJSON() || a.Quiet {
		return nil
	}
	def, w, err := workflowOf(ctx, p, run)
	if err != nil {
		return err
	}
	paint, where := a.Err.Paint, ""
	if p.here == nil {
		where = "  at " + p.name + "  (Ctrl-C leaves, the run goes on)"
	}
	a.Progress("%s %s  run %s  def %s  (%s)%s", paint.Cyan("●"), paint.Bold(w.Name), run, def.Short(), render.Cast(&w), where)
	return nil
}

// waitTime is after how long a user reads that a run has not begun; a hub says so later.
const waitTime = 2 * time.Second
