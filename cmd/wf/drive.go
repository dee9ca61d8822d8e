package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
)

// drive goes on with a run, shows it meanwhile, and says where it stands. A person at the
// terminal is asked what the run asks, unless --no-input.
func (a *app) drive(ctx context.Context, s *cas.Store, run protocol.RunID, o engine.DriveOptions) error {
	failed, err := a.driveAndAsk(ctx, s, run, o)
	a.Settle()
	if err != nil {
		return err
	}
	a.Note(ctx, s, run)
	v, err := a.shown(context.WithoutCancel(ctx), a.Engine(s, nil), run) // an interrupted run is shown too
	if err != nil {
		return errors.Join(failed, err)
	}
	if err := a.showOutcome(v); err != nil {
		return err
	}
	var sig signalled
	switch {
	case failed != nil && errors.As(context.Cause(ctx), &sig):
		hint, state := "wf resume "+string(run), "is suspended"
		if v.Status == protocol.Waiting {
			hint, state = next(v), "waits"
		}
		return interrupted{fail(errRunSuspended, hint, "%s; run %s %s, nothing is lost", sig, run, state), sig}
	case failed != nil:
		return failed
	}
	return outcome(v)
}

// driveAndAsk drives a run until nobody here can help it on. failed is why the drive ended
// early, err why it never began.
func (a *app) driveAndAsk(ctx context.Context, s *cas.Store, run protocol.RunID, o engine.DriveOptions) (failed, err error) {
	st, err := a.Engine(s, nil).State(ctx, run)
	if err != nil {
		return nil, err
	}
	b := backdrop{ctx: context.WithoutCancel(ctx), blocks: s, edges: st.Program().Workflow.Edges, steers: map[string]bool{}}
	live := daemon.NewLiveSockets(s)
	defer live.Close()
	asked, seen := false, protocol.Seq(0)
	for {
		rep := a.newReporter(b)
		shown := only(run, rep.notice)
		e := a.Engine(s, func(n api.Update) { live.Notice(n); shown(n) })
		_, failed = e.Drive(ctx, run, o)
		live.End(run)
		rep.close()
		if asked && errors.Is(failed, protocol.ErrRunLive) {
			a.progress("another process goes on with the run")
			failed = a.attend(ctx, s, run, seen, a.newReporter)
		}
		switch {
		case errors.Is(failed, protocol.ErrRunLive), errors.Is(failed, protocol.ErrUnknownRun):
			return nil, failed
		case failed != nil || !a.interactive() || a.asJSON():
			return failed, nil
		}
		e = a.Engine(s, nil)
		v, err := e.ViewWindow(ctx, run, api.Window{Limit: lastSteps})
		if err != nil {
			return nil, err
		}
		seen = v.Seq
		asked, err = a.askAtTerminal(ctx, v, func(ctx context.Context, r engine.Reply) error {
			_, err := e.Answer(ctx, run, r)
			return err
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return err, nil
		case err != nil || !asked:
			return nil, err
		}
		o = engine.DriveOptions{By: compose.User()}
	}
}

// interrupted is a run that a signal suspended.
type interrupted struct {
	error
	sig signalled
}

func (i interrupted) Unwrap() []error { return []error{i.sig, i.error} }

// only passes on the notices of one run: those of its sub-workflows belong to runs of their
// own, with their own step names.
func only(run protocol.RunID, notice func(api.Update)) func(api.Update) {
	return func(n api.Update) {
		if n.Run == run {
			notice(n)
		}
	}
}

// showOutcome writes the answer of wf run and wf resume.
func (a *app) showOutcome(v *api.Run) error {
	if a.asJSON() {
		return a.answer(v)
	}
	p := paint{a.out.color}
	stands := standingOf(v)
	fmt.Fprintf(a.out, "%s %s  run %s  %s  %s  head %s\n", stands.sign(p), stands.word(), v.ID,
		protocol.Plural(v.Count(), "step"), span(time.Duration(v.ActiveMS)*time.Millisecond), shortCID(v.Head))
	if v.Reason != "" {
		fmt.Fprintf(a.out, "  %s\n", indentLines(v.Reason, "  "))
	}
	for _, s := range v.Steps {
		if s.CutOff {
			fmt.Fprintf(a.out, "  %s\n", p.yellow(s.ID+" "+cutOff))
		}
	}
	a.showTail(v)
	if err := a.showFields("", v.Outputs); err != nil {
		return err
	}
	if err := a.showAnswer(v); err != nil {
		return err
	}
	for _, w := range v.Waiting {
		if err := a.showQuestion(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.out, "  %s   %s\n", p.dim("next"), next(v))
	return err
}

// cutOff warns of an answer without an end: a role without output takes it as it is.
const cutOff = "was cut off: its answer has as many tokens as it may have. Raise max_tokens in the params of the role"

// tailLines is how much of what a failed step said is shown below the run.
const tailLines = 10

// showTail shows the end of what the step said by which the run did not go on.
func (a *app) showTail(v *api.Run) {
	if v.Status != protocol.Suspended && v.Status != protocol.Failed {
		return
	}
	for _, s := range slices.Backward(v.Steps) {
		if s.Status != string(protocol.StepFailed) || s.Text == "" {
			continue
		}
		lines := strings.Split(visible(s.Text), "\n")
		from := max(0, len(lines)-tailLines)
		if from > 0 {
			fmt.Fprintf(a.out, "    … %d more lines of %s: wf log %s:%s\n", from, s.ID, v.ID, s.ID)
		}
		for _, l := range lines[from:] {
			fmt.Fprintf(a.out, "    %s\n", l)
		}
		return
	}
}

// showAnswer shows what the last agent of a finished run said, where no outputs are declared.
func (a *app) showAnswer(v *api.Run) error {
	if v.Status != protocol.Done || !noOutputs(v.Outputs) {
		return nil
	}
	for _, s := range slices.Backward(v.Steps) {
		switch {
		case s.Action != protocol.ActPrompt || s.Status != string(protocol.StepOK):
			continue
		case !noOutputs(s.Output):
			return a.showFields("", s.Output)
		case s.Text != "":
			_, err := fmt.Fprintf(a.out, "\n%s\n\n", strings.TrimRight(visible(s.Text), "\n"))
			return err
		}
		return nil
	}
	return nil
}

// noOutputs reports whether an object has no fields.
func noOutputs(object protocol.JSON) bool {
	fields, err := fieldsOf(object)
	return err == nil && len(fields) == 0
}

// showFields writes the fields of an object, one per line, texts of several lines indented.
func (a *app) showFields(indent string, object protocol.JSON) error {
	fields, err := fieldsOf(object)
	if err != nil {
		return err
	}
	p := paint{a.out.color}
	for _, f := range fields {
		fmt.Fprintf(a.out, "%s  %s %s\n", indent, p.bold(f.name+":"), indentLines(f.text(), indent+"    "))
	}
	return nil
}

func (a *app) showQuestion(w api.Waiting) error {
	p := paint{a.out.color}
	switch w.Kind {
	case protocol.WaitTimer:
		due := "its time"
		if w.Due != nil {
			due = *w.Due
		}
		fmt.Fprintf(a.out, "  %s waits until %s\n", w.Step, due)
	case protocol.WaitSignal:
		fmt.Fprintf(a.out, "  %s waits for the signal %s\n", w.Step, w.Question)
	default:
		fmt.Fprintf(a.out, "  %s asks: %s\n", w.Step, indentLines(w.Question, "    "))
	}
	for _, c := range w.Choices {
		mark := " "
		if c.Primary {
			mark = "*"
		}
		fmt.Fprintf(a.out, "  %s %s  %s\n", mark, p.bold(c.Value), c.Label)
	}
	return a.showForm(string(w.Form))
}

// status is the sign in front of a run.
func (p paint) status(s protocol.RunStatus) string {
	switch s {
	case protocol.Done:
		return p.green("✓")
	case protocol.Failed:
		return p.red("✗")
	case protocol.Waiting:
		return p.yellow("⏸")
	case protocol.Suspended:
		return p.yellow("!")
	case protocol.Cancelled:
		return p.dim("–")
	}
	return p.cyan("●")
}
