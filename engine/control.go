package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// Reply is an answer to a waiting visit.
type Reply struct {
	Step   string // coder#2; "" where only one visit waits
	Signal string // instead of Step: the visits that wait for this signal
	Choice string // value or label
	Text   string
	Fields protocol.JSON // of a form, an object
	By     string
	Source string // cli, terminal, http, …
	// Shown is the digest of the tool call that was shown to the person, "" for any question: the
	// reply is refused where the visit asks for another call by now.
	Shown string
	// Bound is the name of an authenticated person other than the user of this process, "" for none: where
	// the question has assignees it has to be one of them.
	Bound string

	handedDown bool // by the driver of the run that this one is a part of, for which it is no news
}

// Answer records a reply; Drive then goes on with it, here or where the run is driven. A run
// that does not wait for it is an error wrapping protocol.ErrNotWaiting, a reply that does
// not fit one wrapping protocol.ErrAnswer, a foreign run one wrapping protocol.ErrForeign. Secrets of the workflow and what has the shape of a
// key are hidden in it before it is stored.
func (e *Engine) Answer(ctx context.Context, run protocol.RunID, r Reply) (step string, err error) {
	if err := e.Own(ctx, run); err != nil {
		return "", err
	}
	err = e.insistTelling(ctx, run, !r.handedDown, func(s *rules.State) ([]cas.Draft, []cas.Block, error) {
		w, err := waitingFor(s, r)
		if err != nil {
			return nil, nil, fmt.Errorf("run %s: %w", run, err)
		}
		if r.Shown != "" && r.Shown != w.Shown {
			return nil, nil, refusal(protocol.ErrNotWaiting, "run %s: %s asks for another call than the one that was answered: look at it again", run, w.Step)
		}
		if err := e.mayAnswer(ctx, run, s, w, r); err != nil {
			return nil, nil, err
		}
		hide := hider(s.Program())
		if r, err = chosen(w, r); err != nil {
			return nil, nil, err
		}
		a := protocol.Answered{By: r.By, Source: r.Source, Choice: r.Choice,
			Text: protocol.NewText(hide.String(r.Text)), Fields: protocol.NewText(hide.String(string(r.Fields))), Shown: w.Shown}
		if w.Kind == protocol.WaitQuestion || w.Kind == protocol.WaitChoice {
			form, err := textOf(e.reader(ctx), w.Form)
			if err != nil {
				return nil, nil, err
			}
			if _, err := roles.AnswerOf(protocol.Role{Choices: w.Choices, Form: form}, a); err != nil {
				return nil, nil, refusal(protocol.ErrAnswer, "answer to %s: %v", w.Step, err)
			}
		}
		step = w.Step.String()
		return []cas.Draft{{Step: step, Data: a}}, nil, nil
	})
	return step, err
}

// mayAnswer is nil if a question takes the answer: it has no assignees, or one of them answers, and the run of a
// sub-workflow of which it is waits for it still.
func (e *Engine) mayAnswer(ctx context.Context, run protocol.RunID, s *rules.State, w rules.WaitingVisit, r Reply) error {
	if r.Bound != "" && len(w.Assignees) > 0 && !slices.Contains(w.Assignees, r.Bound) {
		return protocol.ErrForbidden.With("one of them answers it with a token of that name",
			"run %s: %s is for %s to answer, not for %s", run, w.Step, strings.Join(w.Assignees, ", "), r.Bound)
	}
	v, err := s.Visit(w.Step.String())
	if err != nil || w.Due == 0 || !isSubflow(s, v) {
		return err
	}
	child, err := e.State(ctx, childRun(run, rules.StepKey(run, &v.Begun)))
	if errors.Is(err, protocol.ErrUnknownRun) {
		return nil // a fork begins a child of its own
	}
	if err == nil && !slices.ContainsFunc(child.Waiting(), func(c rules.WaitingVisit) bool { return c.Kind == w.Kind && c.Shown == w.Shown }) {
		err = refusal(protocol.ErrNotWaiting, "run %s: the time to answer %s is over", run, w.Step)
	}
	return err
}

// waitingFor finds the visit that a reply is meant for.
func waitingFor(s *rules.State, r Reply) (rules.WaitingVisit, error) {
	if s.Status().Final() {
		return rules.WaitingVisit{}, refusal(protocol.ErrFinal, "it is %s", s.Status())
	}
	var fits []rules.WaitingVisit
	var all []string
	for _, w := range s.Waiting() {
		all = append(all, w.Step.String())
		switch {
		case r.Signal != "":
			if w.Kind == protocol.WaitSignal && w.Question.S == r.Signal {
				fits = append(fits, w)
			}
		case r.Step == "" || r.Step == w.Step.String():
			fits = append(fits, w)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(all) == 0:
		return rules.WaitingVisit{}, protocol.ErrNotWaiting
	case len(fits) == 0 && r.Signal != "":
		return rules.WaitingVisit{}, refusal(protocol.ErrNotWaiting, "no step waits for the signal %s; what waits is %s", r.Signal, strings.Join(all, ", "))
	case len(fits) == 0:
		return rules.WaitingVisit{}, refusal(protocol.ErrNotWaiting, "%s does not wait; what waits is %s", r.Step, strings.Join(all, ", "))
	}
	return rules.WaitingVisit{}, refusal(protocol.ErrUsage, "several visits wait, name one of %s", strings.Join(all, ", "))
}

// chosen has a reply name the choice by its value. A text that names one, where none is named
// otherwise, is that choice and no text; one that begins with deny denies a tool call, and the rest of
// it is the reason.
func chosen(w rules.WaitingVisit, r Reply) (Reply, error) {
	if len(w.Choices) == 0 {
		if r.Choice != "" {
			return r, refusal(protocol.ErrAnswer, "%s offers no choices", w.Step)
		}
		return r, nil
	}
	var values []string
	for _, c := range w.Choices {
		values = append(values, c.Value)
	}
	want := r.Choice
	if want == "" {
		want, r.Text = r.Text, ""
	}
	c, ok := roles.ChoiceNamed(w.Choices, want)
	if first, why, _ := strings.Cut(want, " "); !ok && w.Kind == protocol.WaitApproval && strings.TrimRight(first, ":,") == protocol.Deny {
		c, ok = roles.ChoiceNamed(w.Choices, protocol.Deny)
		r.Text = strings.TrimSpace(why + "\n" + r.Text)
	}
	switch {
	case ok:
		r.Choice = c.Value
		return r, nil
	case want == "":
		return r, refusal(protocol.ErrAnswer, "%s wants a choice of %s", w.Step, strings.Join(values, ", "))
	}
	return r, refusal(protocol.ErrAnswer, "%s does not offer %q, but %s", w.Step, want, strings.Join(values, ", "))
}

// refusal is why an answer is not taken, with the code of a sentinel.
func refusal(sentinel *protocol.Error, format string, args ...any) error {
	hint := ""
	if sentinel == protocol.ErrUsage {
		hint = protocol.ErrNotWaiting.Hint
	}
	return sentinel.With(hint, format, args...)
}

// Cancel ends a run for good. A process that drives it stops what it started. The runs of its
// open sub-workflows are cancelled too. Those that have always roles close: these are performed here, unless another
// process drives the run. To cancel a run that closes a second time skips what is left of that.
func (e *Engine) Cancel(ctx context.Context, run protocol.RunID, by, reason string) error {
	closing, err := e.CancelSoon(ctx, run, by, reason)
	return errors.Join(err, e.CloseRuns(ctx, closing, by))
}

// CancelSoon is Cancel that leaves it to its caller to drive the runs that close; they are returned, children first.
func (e *Engine) CancelSoon(ctx context.Context, run protocol.RunID, by, reason string) (closing []protocol.RunID, err error) {
	return e.cancel(ctx, run, by, reason, cancelAgain)
}

// CancelOnce is CancelSoon that leaves alone a run that closes already.
func (e *Engine) CancelOnce(ctx context.Context, run protocol.RunID, by, reason string) (closing []protocol.RunID, err error) {
	return e.cancel(ctx, run, by, reason, cancelOnce)
}

// cancel is CancelSoon as persistent as it is told.
func (e *Engine) cancel(ctx context.Context, run protocol.RunID, by, reason string, how persistence) (closing []protocol.RunID, err error) {
	var children []protocol.RunID
	var groups map[string]string
	closes, skipped := false, false
	err = e.insist(ctx, run, func(s *rules.State) ([]cas.Draft, []cas.Block, error) {
		if s.Status().Final() {
			return nil, nil, fmt.Errorf("run %s is %s: %w", run, s.Status(), protocol.ErrFinal)
		}
		children, groups = childrenOf(s, run), s.Info.Groups
		drafts, err := e.cancelled(ctx, run, s, by, hider(s.Program()).String(reason), how)
		closes, skipped = true, false
		for _, x := range drafts {
			switch x.Data.(type) {
			case protocol.ClosingSkipped:
				skipped = true
			case protocol.CancelledBy, protocol.Finished:
				closes = false
				e.over(run)
			}
		}
		return drafts, nil, err
	})
	if skipped {
		how = cancelSkip
	}
	for _, c := range children {
		more, cerr := e.cancel(ctx, c, by, "its parent run "+string(run)+" was cancelled", how)
		closing = append(closing, more...)
		if cerr != nil &&
			!errors.Is(cerr, protocol.ErrFinal) && !errors.Is(cerr, protocol.ErrUnknownRun) && !errors.Is(cerr, protocol.ErrRunDeleted) {
			err = errors.Join(err, cerr)
		}
	}
	switch {
	case err == nil && closes:
		closing = append(closing, run)
	case err == nil:
		e.freed(context.WithoutCancel(ctx), run, groups)
	}
	return closing, err
}

// insist appends what decide asks for, anew when another process was faster.
func (e *Engine) insist(ctx context.Context, run protocol.RunID, decide func(*rules.State) ([]cas.Draft, []cas.Block, error)) error {
	return e.insistTelling(ctx, run, true, decide)
}

// insistTelling is insist; tells has the run that this one is a part of driven once more.
func (e *Engine) insistTelling(ctx context.Context, run protocol.RunID, tells bool, decide func(*rules.State) ([]cas.Draft, []cas.Block, error)) error {
	for {
		s, err := e.State(ctx, run)
		if err != nil {
			return err
		}
		drafts, blocks, err := decide(s)
		if err != nil || len(drafts) == 0 {
			return err
		}
		j, err := e.Store.Journal(ctx, run)
		if err != nil {
			return err
		}
		if _, seq := j.Head(); seq != s.Seq {
			continue
		}
		st, err := j.Stage(max(e.now(), s.TS), drafts, blocks)
		if err != nil {
			return err
		}
		if err := e.moved(ctx, st, run, s, tells); err != nil {
			return err
		}
		entries, err := j.Commit(ctx, st)
		if errors.Is(err, protocol.ErrHeadMoved) {
			continue
		}
		if err == nil {
			e.notify(aboutRun(run, s), entries, drafts)
		}
		return err
	}
}
