package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"wf/agentkit/tape"
	"wf/api"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
)

// outputsKept is how many bytes of outputs stand in the answer; longer ones are left out.
const outputsKept = 64 << 10

// run performs and judges one run of a case, in dir. One that was interrupted goes on.
func (x *evaluation) run(ctx context.Context, j job) (r api.EvalRun, dir string, err error) {
	dir, request, err := x.place(ctx, j)
	if err != nil {
		return r, dir, err
	}
	l := x.Launch
	l.Program, l.Source, l.File, l.Description = x.Definition.Program, x.Definition.Source, x.Definition.Path, x.Definition.Program.Workflow.Description
	l.Title, l.RequestID, l.Workspace = l.Program.Workflow.Name+": "+j.c.Name, request, dir
	if l.Inputs, err = l.Program.Inputs(j.c.Inputs); err != nil {
		return r, dir, err
	}
	l.Cache = protocol.CacheOff // else one run would tell what another found
	var play *tape.Play
	if x.taped(j.c) {
		name, err := x.tapes.model(j.c.Tape)
		if err != nil {
			return r, dir, err
		}
		l.Models = map[string][]string{"": {name}}
		play = &tape.Play{Sequence: true}
		ctx = tape.With(ctx, play)
	}
	var rec *recording
	if x.Record {
		if rec, err = newRecording(dir + ".tape"); err != nil {
			return r, dir, err
		}
		defer rec.drop()
		ctx = tape.Recording(ctx, rec.Recorder)
	}
	run, fresh, err := x.Begin(ctx, l)
	if err != nil {
		return r, dir, err
	}
	r.Run = run
	v, cut, err := x.drive(ctx, j, run, fresh)
	if err == nil && v == nil {
		v, err = x.Engine.View(context.WithoutCancel(ctx), run)
	}
	if v != nil {
		r.Status, r.Steps, r.ActiveMS, r.CostUSD, r.Tokens = v.Status, v.Count(), v.ActiveMS, v.CostUSD, tokensOf(v)
		if len(v.Outputs) <= outputsKept {
			r.Outputs = v.Outputs
		}
	}
	if play != nil {
		r.CostUSD = new(0.0) // a tape costs nothing
		if err := x.told(&r, j, play.Count()); err != nil {
			return r, dir, err
		}
	}
	if err != nil {
		return r, dir, err
	}
	if cut {
		r.Verdict, r.Why, r.Code, r.Hint = api.EvalCut, "run "+string(run)+" reached a limit of the evaluation", ErrEvalLimit.Code, ErrEvalLimit.Hint
		return r, dir, nil
	}
	if err := x.stopped(v); err != nil {
		return r, dir, err
	}
	if err := x.judge(ctx, j, v, dir, &r); err != nil {
		return r, dir, err
	}
	if rec != nil {
		if err := x.keep(rec, j.c); err != nil {
			return r, dir, err
		}
		r.Recorded = j.c.Tape
	}
	return r, dir, nil
}

// tokensOf is what the models of a run read and wrote.
func tokensOf(v *api.Run) (sum int64) {
	for _, n := range []*int64{v.Usage.Input, v.Usage.Output} {
		if n != nil {
			sum += *n
		}
	}
	return sum
}

// drive drives a run until it has ended, and answers what it asks. cut is set where a limit of the evaluation stopped it. One
// that is not fresh goes on also where an error suspended it: that may have been put right.
func (x *evaluation) drive(ctx context.Context, j job, run protocol.RunID, fresh bool) (v *api.Run, cut bool, err error) {
	if v, err = x.Engine.View(ctx, run); err != nil {
		return nil, false, err
	}
	if !fresh {
		x.purse.spendMore(v.CostUSD, x.notes.before[j.name].CostUSD)
	}
	for again := !fresh; goesOn(v) || again && !v.Status.Final(); again = false {
		if v.Status == protocol.Waiting {
			if err := x.answer(ctx, j, v); err != nil {
				return v, false, err
			}
		}
		b, err := x.bounds(ctx, j.c, v)
		if err != nil {
			return v, errors.Is(err, ErrEvalLimit), notLimit(err)
		}
		before := micros(v.CostUSD)
		err = x.Keeper.Resume(ctx, run, protocol.Running, engine.DriveOptions{By: compose.User(), Limits: b.limits})
		if err == nil {
			err = x.Follow(ctx, run)
		}
		now, failed := x.Engine.View(context.WithoutCancel(ctx), run)
		if now != nil {
			v = now
		}
		if b.reserved > 0 {
			x.purse.settle(b.reserved, micros(v.CostUSD)-before)
		}
		if err = errors.Join(err, failed); err != nil {
			return v, false, err
		}
		switch {
		case b.reserved > 0 && v.CostUSD == nil && x.tokens(j.c) == 0:
			return v, false, protocol.ErrPrice.With("set the price of its models (wf cost "+string(run)+" names them), or bound the tokens of each run: --max-tokens", "the cost limit cannot hold: the cost of run %s is not known", run)
		case v.Status == protocol.Waiting:
		case v.Status != protocol.Suspended || v.Suspended != protocol.ByLimit:
			return v, false, nil
		case b.tokens > 0 && tokensOf(v) >= b.tokens:
			return v, true, nil
		case b.cost == 0 || micros(v.CostUSD) < b.cost:
			return v, false, nil // a limit of its workflow
		} // else its share of the money is used up: it goes on with what is left
	}
	return v, false, nil
}

// notLimit is an error that is none of the limit of the evaluation.
func notLimit(err error) error {
	if errors.Is(err, ErrEvalLimit) {
		return nil
	}
	return err
}

// bounds are the limits that the evaluation sets for a run, beside those of its workflow.
type bounds struct {
	limits   []protocol.LimitChanged
	tokens   int64 // 0 where it sets none
	cost     int64 // in micro-dollars, likewise
	reserved int64 // of the money
}

// bounds reserves what a run may cost from here on.
func (x *evaluation) bounds(ctx context.Context, c *lang.SuiteCase, v *api.Run) (b bounds, err error) {
	own := x.Definition.Program.Workflow.Limits
	tokens := x.tokens(c)
	if tokens > 0 && tokens != own.Tokens {
		b.tokens = tokens
		b.limits = append(b.limits, protocol.LimitChanged{Limit: "tokens", Max: tokens, By: compose.User()})
	}
	if x.Cost == 0 || x.taped(c) || x.most == 0 { // without a price the tokens alone are bounded
		return b, nil
	}
	spent := micros(v.CostUSD)
	want := float64(mostOfALimit)
	if own.Cost > 0 {
		want = float64(max(own.Cost-spent, 1))
	}
	if tokens > 0 && x.most > 0 {
		want = min(want, math.Ceil(float64(max(tokens-tokensOf(v), 1))*float64(x.most)/1e6))
	}
	if want >= mostOfALimit {
		want = 0
	}
	if b.reserved, err = x.purse.reserve(ctx, int64(want)); err != nil {
		return b, err
	}
	if b.reserved == 0 {
		return b, ErrEvalLimit
	}
	limit := min(spent+b.reserved, mostOfALimit)
	if own.Cost == 0 || limit < own.Cost {
		b.cost = limit
		b.limits = append(b.limits, protocol.LimitChanged{Limit: "cost_usd", Max: limit, By: compose.User()})
	}
	return b, nil
}

// answer answers the questions that a run waits for.
func (x *evaluation) answer(ctx context.Context, j job, v *api.Run) error {
	answered := false
	for _, w := range v.Waiting {
		step := w.Step
		role, visit := roleOf(v, step)
		if w.Kind != protocol.WaitQuestion && w.Kind != protocol.WaitChoice || role == "" {
			continue
		}
		list := j.c.Answers[role]
		if visit < 1 || visit > len(list) {
			continue
		}
		a := list[visit-1]
		if _, err := x.Answer(ctx, v.ID, api.Answer{Step: step, Choice: a.Choice, Text: a.Text, Fields: json.RawMessage(a.Fields), Source: "eval"}); err != nil {
			return fmt.Errorf("answers of case %q: %w", j.c.Name, err)
		}
		answered = true
	}
	if answered {
		return nil
	}
	hint, what := "a case has answers for questions (ask) alone; leave out what else waits, such as by an input of the workflow", "for something else than a question"
	for _, w := range v.Waiting {
		role, visit := roleOf(v, w.Step)
		if w.Kind == protocol.WaitQuestion || w.Kind == protocol.WaitChoice {
			what = fmt.Sprintf("for an answer to %s", w.Step)
			if role != "" {
				hint = fmt.Sprintf("add it to the case: answers: {%s: …}", role)
				if visit > 1 {
					hint = fmt.Sprintf("add the answer to visit %d: answers: {%s: [ … ]}", visit, role)
				}
			}
			break
		}
		what = fmt.Sprintf("for %s at %s", protocol.Article(string(w.Kind)), w.Step)
	}
	return protocol.ErrWaiting.With(hint, "run %s waits %s", v.ID, what)
}

// roleOf is the role of a visit of a run itself, and its number; "" is of none.
func roleOf(v *api.Run, step string) (role string, visit int) {
	for _, s := range v.Steps {
		if s.ID == step {
			return s.Role, s.Visit
		}
	}
	return "", 0
}

// stopped is the error of a run that has not come to what its workflow makes of it.
func (x *evaluation) stopped(v *api.Run) error {
	switch {
	case v.Status.Final():
		return nil
	case v.Status != protocol.Suspended, v.Suspended == protocol.ByInterrupt:
		return protocol.ErrNotFinal.With("--continue goes on with it", "run %s is not over: it is %s", v.ID, v.Status)
	}
	err := x.Unfit(v)
	if err == nil {
		return nil
	}
	return protocol.Hinted(err, strings.Replace(protocol.HintOf(err), "wf resume "+string(v.ID), "evaluate again", 1))
}
