package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/api"
	"wf/protocol"
)

// ShowRun writes a run with its steps, questions and outputs, as wf show does. fans are those of its fan-outs that
// are folded.
func (p *Printer) ShowRun(v *api.Run, fans map[string]*FanOut) error {
	AtRest(v)
	state := StateOf(v)
	fmt.Fprintf(p.Out, "%s %s  run %s  %s  def %s\n", state.Sign(p.Out.Paint), p.Out.Bold(Visible(v.Info.Title)), v.ID, state.Word(), ShortCID(v.Definition))
	rows := [][]string{}
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{"  " + p.Out.Dim(name), Visible(value)})
		}
	}
	row("description", OneLine(v.Info.Description, 100))
	row("closing", closingWords(v))
	row("reason", v.Reason)
	row("state", state.Why())
	row("queue", Queued(v.Queue))
	if v.Foreign {
		row("origin", "from elsewhere: no process goes on with it before "+wf("store", "adopt", string(v.ID)))
	}
	row("started", v.Started+" by "+cmp.Or(v.Info.CreatedBy, "someone"))
	if v.Info.Trigger != nil {
		row("by", v.Info.Trigger.String())
	}
	if v.Info.ForkedFrom != nil {
		row("forked from", ShortOf(v.Info.ForkedFrom))
	}
	if v.Ended != nil {
		row("ended", *v.Ended)
	}
	row("time", Took(v))
	if v.Reuse != nil {
		row("reuse", Reused(v))
	}
	row("workspace", v.Info.Workspace)
	row("on machine", v.Info.Machine)
	if parent := v.Info.Parent; parent != nil {
		row("parent", string(parent.Run)+":"+parent.Step)
	}
	if by := v.Info.CausedBy; by != nil {
		row("caused by", fmt.Sprintf("a notification about run %s, event %d", by.Run, by.Seq))
	}
	row("tags", strings.Join(v.Info.Tags, ", "))
	row("inputs", inputs(string(v.Info.Inputs)))
	if err := Table(p.Out, rows); err != nil {
		return err
	}
	switch {
	case v.Matching != nil:
		text := fmt.Sprintf("%d of %d steps match", *v.Matching, v.Count())
		if v.Earlier > 0 {
			text += fmt.Sprintf("; the newest %d are shown, --before %d shows earlier ones", len(v.Steps), v.Earlier)
		}
		fmt.Fprintln(p.Out, "  "+p.Out.Dim(text))
	case v.Earlier > 0:
		fmt.Fprintln(p.Out, "  "+p.Out.Dim(fmt.Sprintf("%d of %d steps; %s shows earlier ones", len(v.Steps), v.Total, p.Commands(wf("show", string(v.ID), "--before", fmt.Sprint(v.Earlier))))))
	}
	if err := p.stepTable(v.ID, v.Steps, fans); err != nil {
		return err
	}
	p.showCleanup(v)
	if err := p.showQuestions(v); err != nil {
		return err
	}
	if v.Result != nil && !noOutputs(v.Outputs) {
		fmt.Fprintln(p.Out, "  "+p.Out.Dim("outputs"))
		if err := p.showFields("  ", v.Outputs); err != nil {
			return err
		}
	}
	next := strings.TrimPrefix(Next(v), wf("show", string(v.ID))+" · ") // which this is
	_, err := fmt.Fprintf(p.Out, "  %s %s  seq %d\n  %s %s\n", p.Out.Dim("head"), v.Head, v.Seq, p.Out.Dim("next"), p.nextOf(next, "       "))
	return err
}

// ShowOutcome writes the answer of wf run and wf resume.
func (p *Printer) ShowOutcome(v *api.Run) error {
	if p.AsJSON() {
		return p.Answer(v)
	}
	state := StateOf(v)
	fmt.Fprintf(p.Out, "%s %s  run %s  %s  %s  head %s\n", state.Sign(p.Out.Paint), state.Word(), v.ID,
		protocol.Plural(v.Count(), "step"), Took(v), ShortCID(v.Head))
	if v.Reason != "" {
		fmt.Fprintf(p.Out, "  %s\n", IndentLines(v.Reason, "  "))
	}
	p.showCutOff(v)
	p.showTail(v)
	p.showCleanup(v)
	if v.Reuse != nil {
		fmt.Fprintf(p.Out, "  %s\n", Visible(Reused(v)))
	}
	if err := p.showFields("", v.Outputs); err != nil {
		return err
	}
	if err := p.showAnswer(v); err != nil {
		return err
	}
	if err := p.showQuestions(v); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Out, "  %s   %s\n", p.Out.Dim("next"), p.next(v, "         "))
	return err
}

// next are the most useful next commands, none of them broken by a terminal that is as wide as one.
func (p *Printer) next(v *api.Run, indent string) string { return p.nextOf(Next(v), indent) }

func (p *Printer) nextOf(commands, indent string) string {
	return p.Out.Row(indent, " · ", strings.Split(p.Commands(commands), " · "))
}

// inputsMax is how many letters of the inputs of a run are shown.
const inputsMax = 1000

// inputs are those of a run on one line, or their beginning.
func inputs(text string) string {
	if utf8.RuneCountInString(text) > inputsMax {
		return OneLine(text, inputsMax) + fmt.Sprintf(" %s bytes; -o json has all of them", grouped(len(text)))
	}
	return text
}

// closingWords say what a run that closes ends as.
func closingWords(v *api.Run) string {
	if v.Closing == "" {
		return ""
	}
	return "ends as " + string(v.Closing) + " when its always roles have run"
}

// showCleanup shows the always roles that failed or were skipped.
func (p *Printer) showCleanup(v *api.Run) {
	for _, c := range v.CleanupFailed {
		what, more := c.Role+" did not run", ""
		if c.Step != "" {
			what, more = c.Step+" failed", "; "+p.Commands(wf("log", string(v.ID)+":"+c.Step))
		}
		fmt.Fprintf(p.Out, "  %s\n", p.Out.Yellow("! "+Visible("cleanup: "+what+Because(OneLine(c.Message, 160))+more)))
	}
}

// showCutOff names the steps whose answers have no end.
func (p *Printer) showCutOff(v *api.Run) {
	n := 0
	for _, s := range v.Steps {
		if !s.CutOff {
			continue
		}
		if n++; n <= oddMax {
			fmt.Fprintf(p.Out, "  %s\n", p.Out.Yellow(s.ID+" "+cutOff))
		}
	}
	if n > oddMax {
		fmt.Fprintf(p.Out, "  %s\n", p.Out.Yellow(fmt.Sprintf("… %s more were cut off: %s", grouped(n-oddMax), p.Commands(allCommand("show", v.ID)))))
	}
}

// cutOff warns of an answer without an end: a role without output takes it as it is.
const cutOff = "was cut off: its answer has as many tokens as it may have. Raise max_tokens in the params of the role"

// tailLines is how much of what a failed step said is shown below the run.
const tailLines = 10

// Blamed is the step by which a run did not go on: that behind a FAIL, or that which the reason names; "" where it names none.
func Blamed(v *api.Run) string {
	if v.Cause != nil {
		return v.Cause.Step
	}
	id, _, named := strings.Cut(v.Reason, ": ")
	if _, err := protocol.ParseStepID(id); !named || err != nil {
		return ""
	}
	return id
}

// showTail shows the end of what the step said by which the run did not go on: of several that failed, that which the
// reason names. A limit of the run is no fault of a step.
func (p *Printer) showTail(v *api.Run) {
	if v.Status != protocol.Suspended && v.Status != protocol.Failed || strings.HasPrefix(v.Reason, "limits.") {
		return
	}
	blamed := Blamed(v)
	for _, s := range slices.Backward(v.Steps) {
		if blamed != "" && s.ID != blamed {
			continue
		}
		if s.Status != string(protocol.StepFailed) || s.Text == "" || s.Via == protocol.ViaAlways {
			continue
		}
		lines := strings.Split(Visible(s.Text), "\n")
		from := max(0, len(lines)-tailLines)
		if from > 0 {
			fmt.Fprintf(p.Out, "    … %d more lines of %s: %s\n", from, s.ID, p.Commands(wf("log", string(v.ID)+":"+s.ID)))
		}
		for _, l := range lines[from:] {
			fmt.Fprintf(p.Out, "    %s\n", l)
		}
		return
	}
}

// showAnswer shows what the last agent of a finished run said, where no outputs are declared.
func (p *Printer) showAnswer(v *api.Run) error {
	if v.Status != protocol.Done || !noOutputs(v.Outputs) {
		return nil
	}
	for _, s := range slices.Backward(v.Steps) {
		switch {
		case s.Via == protocol.ViaAlways, s.Action != protocol.ActPrompt || s.Status != string(protocol.StepOK):
			continue
		case !noOutputs(s.Output):
			return p.showAnswered("", s.Output, s.Text)
		case s.Text != "":
			_, err := fmt.Fprintf(p.Out, "\n%s\n\n", strings.TrimRight(Visible(s.Text), "\n"))
			return err
		}
		return nil
	}
	return nil
}
