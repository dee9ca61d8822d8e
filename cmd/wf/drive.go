package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

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
