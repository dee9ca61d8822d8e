package render

import (
	"fmt"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// An EvalTable shows an evaluation while it goes on: a line for each case that is decided, and on a terminal below them what
// is under way.
type EvalTable struct {
	p     *Printer
	drawn int // lines at the bottom to be wiped
	over  int
	begun map[string]int // runs under way, by their case
	order []string
	most  int // cases
	wide  int // of their names
}

// NewEvalTable is that of an evaluation of so many cases, whose longest name has so many letters.
func (p *Printer) NewEvalTable(cases, wide int) *EvalTable {
	return &EvalTable{p: p, most: cases, wide: min(wide, 50), begun: map[string]int{}}
}

// Tell shows a run that begins or has ended, or, without one, a case that is decided.
func (t *EvalTable) Tell(e *api.Eval, c *api.EvalCase, r *api.EvalRun) {
	switch {
	case r == nil:
		t.over++
		t.line(t.p.evalLine(c, t.wide))
		if t.p.Format == "jsonl" {
			t.p.evalCase(c)
		}
	case r.Verdict == api.EvalOpen && r.Run == "":
		if t.begun[c.Name]++; t.begun[c.Name] == 1 {
			t.order = append(t.order, c.Name)
		}
		t.line("")
	default:
		t.begun[c.Name] = max(t.begun[c.Name]-1, 0)
		if t.p.Verbose {
			t.line(fmt.Sprintf("    %s  run %s  %s", inLine(c.Name, nameMax), r.Run, r.Verdict))
		} else {
			t.line("")
		}
	}
}

// Said shows a line that the check of a case wrote.
func (t *EvalTable) Said(name, line string) {
	t.line("    " + inLine(name, 50) + " | " + inLine(line, 500))
}

// inLine is a text in one line.
func inLine(s string, n int) string { return unordered(OneLine(s, n)) }

// nameMax is how many letters of the name of a case are shown.
const nameMax = 200

// line writes a line above what is under way, or draws that alone.
func (t *EvalTable) line(text string) {
	if t.p.Quiet {
		return
	}
	if !t.p.Err.TTY {
		if text != "" {
			fmt.Fprintln(t.p.Err, text)
		}
		return
	}
	below, drawn := t.below(), 0
	if below != "" {
		drawn = 1
	}
	if text != "" {
		text += "\n"
	}
	t.p.Err.redraw(t.drawn, text+below)
	t.drawn = drawn
}

// below is what is under way, as a line.
func (t *EvalTable) below() string {
	var names []string
	order := t.order[:0]
	for _, name := range t.order {
		if t.begun[name] > 0 {
			names, order = append(names, inLine(name, nameMax)), append(order, name)
		}
	}
	if t.order = order; len(names) == 0 {
		return ""
	}
	width, _ := t.p.Err.Size()
	text := fmt.Sprintf("─ %d of %s · %s", t.over, protocol.Plural(t.most, "case"), strings.Join(names, ", "))
	return t.p.Err.Dim(OneLine(text, max(width-2, 20))) + "\n"
}

// Close wipes what is under way.
func (t *EvalTable) Close() {
	if t.p.Err.TTY && !t.p.Quiet {
		t.p.Err.redraw(t.drawn, "")
		t.drawn = 0
	}
}

// evalCase is a case as a line of JSON.
func (p *Printer) evalCase(c *api.EvalCase) {
	err := WriteLine(p.Out, struct {
		Schema string `json:"schema"`
		*api.EvalCase
	}{api.EvalCaseSchema, c})
	if err != nil {
		p.Progress("error: case %s was not shown: %v", inLine(c.Name, nameMax), err)
	}
}

// evalLine is a case that is decided.
func (p *Printer) evalLine(c *api.EvalCase, wide int) string {
	text := p.Err.evalSign(c.Verdict) + " " + fmt.Sprintf("%-*s", wide, inLine(c.Name, nameMax))
	if len(c.Runs) > 1 {
		text += "  " + evalRate(c)
	}
	ms, ran := int64(0), false
	for _, r := range c.Runs {
		ms, ran = ms+r.ActiveMS, ran || r.Run != ""
	}
	if ran {
		text += "  " + Span(time.Duration(ms)*time.Millisecond)
	}
	if c.Tokens > 0 {
		text += "  " + Count(&c.Tokens) + " tokens"
	}
	text += evalCost(c.CostUSD)
	if tape := evalTape(c.Tape); tape != "" {
		text += "  " + tape
	}
	switch c.Verdict {
	case api.EvalPassed:
	case api.EvalOpen:
		text += "  not over"
	default:
		text += "  " + OneLine(strings.ReplaceAll(c.Why, "\n", "; "), 160)
	}
	return strings.TrimRight(text, " ")
}

func (p Paint) evalSign(v api.EvalVerdict) string {
	switch v {
	case api.EvalPassed:
		return p.Green("✓")
	case api.EvalFailed:
		return p.Red("✗")
	case api.EvalError:
		return p.Red("!")
	}
	return p.Yellow("!")
}

func evalRate(c *api.EvalCase) string {
	text := fmt.Sprintf("%d of %d", c.Rate.Passed, c.Rate.N)
	if lost := len(c.Runs) - c.Rate.N; lost > 0 {
		text += fmt.Sprintf(", %d not completed", lost)
	}
	if c.Rate.Low != nil && c.Rate.High != nil {
		text += fmt.Sprintf(" (%.0f–%.0f %%)", *c.Rate.Low*100, *c.Rate.High*100)
	}
	return text
}

func evalCost(dollars *float64) string {
	switch {
	case dollars == nil:
		return "  cost unknown"
	case *dollars == 0:
		return ""
	}
	return fmt.Sprintf("  $%.4f", *dollars)
}

// evalTape tells how a tape answered, where it is worth telling.
func evalTape(t *api.EvalTape) string {
	if t == nil || t.Match != "sequence" {
		return ""
	}
	return fmt.Sprintf("tape: sequence, %d of %s differed", t.Differed, protocol.Plural(t.Requests, "request"))
}

// Bounds of what is shown of cases that did not pass.
const (
	evalShown = 50 // cases
	evalLines = 12 // of each
)

// ShowEval writes the cases that did not pass, what is worse than in the baseline, and the sums.
func (p *Printer) ShowEval(e *api.Eval) error {
	var s strings.Builder
	shown, more := 0, 0
	for i := range e.Cases {
		c := &e.Cases[i]
		if c.Verdict == api.EvalPassed || c.Verdict == api.EvalOpen && len(c.Runs) == 0 {
			continue
		}
		if shown++; shown > evalShown {
			more++
			continue
		}
		p.showEvalCase(&s, c)
	}
	if more > 0 {
		fmt.Fprintf(&s, "… and %s more that did not pass\n\n", protocol.Plural(more, "case"))
	}
	p.showCompared(&s, e)
	parts := []string{fmt.Sprintf("%d passed", e.Passed)}
	for _, x := range []struct {
		n    int
		word string
	}{{e.Failed, "failed"}, {e.Errors, "with errors"}, {e.Cut, "cut by a limit"}, {len(e.Cases) - e.Passed - e.Failed - e.Errors - e.Cut, "not over"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.word))
		}
	}
	fmt.Fprintf(&s, "%s: %s; %s", protocol.Plural(len(e.Cases), "case"), strings.Join(parts, ", "), protocol.Plural(e.Runs, "run"))
	if e.Tokens > 0 {
		fmt.Fprintf(&s, ", %s tokens", Count(&e.Tokens))
	}
	if e.CostUSD == nil {
		s.WriteString(", of unknown cost")
	} else if *e.CostUSD > 0 {
		fmt.Fprintf(&s, ", $%.4f", *e.CostUSD)
	}
	s.WriteString("\n")
	_, err := fmt.Fprint(p.Out, s.String())
	return err
}

func (p *Printer) showEvalCase(s *strings.Builder, c *api.EvalCase) {
	fmt.Fprintf(s, "%s %s  %s", p.Out.evalSign(c.Verdict), p.Out.Bold(inLine(c.Name, nameMax)), c.Verdict)
	if len(c.Runs) > 1 {
		s.WriteString("  " + evalRate(c))
	}
	for i := range c.Runs {
		if r := &c.Runs[i]; r.Verdict == c.Verdict && r.Run != "" {
			fmt.Fprintf(s, "  run %s", r.Run)
			break
		}
	}
	s.WriteString("\n")
	lines := strings.Split(c.Why, "\n")
	for i, line := range lines {
		if i == evalLines {
			fmt.Fprintf(s, "    … and %d more lines\n", len(lines)-i)
			break
		}
		if line != "" {
			fmt.Fprintf(s, "    %s\n", inLine(line, 300))
		}
	}
	if c.Hint != "" {
		fmt.Fprintf(s, "    fix: %s\n", inLine(c.Hint, 300))
	}
	s.WriteString("\n")
}

func (p *Printer) showCompared(s *strings.Builder, e *api.Eval) {
	if e.Baseline == "" {
		return
	}
	if len(e.Regressions) == 0 {
		fmt.Fprintf(s, "%s no regression against %s\n", p.Out.Green("✓"), inLine(e.Baseline, nameMax))
	} else {
		fmt.Fprintf(s, "%s %s against %s:\n", p.Out.Red("✗"), protocol.Plural(len(e.Regressions), "regression"), inLine(e.Baseline, nameMax))
	}
	for i, r := range e.Regressions {
		if i == evalShown {
			fmt.Fprintf(s, "  … and %d more\n", len(e.Regressions)-i)
			break
		}
		fmt.Fprintf(s, "  %s  %s: %s → %s\n", p.Out.Bold(inLine(r.Case, nameMax)), r.Kind, OneLine(r.Old, 100), OneLine(r.New, 100))
	}
	for i, r := range e.Changes {
		if i == evalShown {
			fmt.Fprintf(s, "  … and %d more differences\n", len(e.Changes)-i)
			break
		}
		switch {
		case r.Old == "":
			fmt.Fprintf(s, "  %s is new: %s\n", inLine(r.Case, nameMax), r.New)
		case r.New == "":
			fmt.Fprintf(s, "  %s is missing: it %s\n", inLine(r.Case, nameMax), r.Old)
		default:
			fmt.Fprintf(s, "  %s  %s differ: %s → %s\n", inLine(r.Case, nameMax), r.Kind, OneLine(r.Old, 100), OneLine(r.New, 100))
		}
	}
	s.WriteString("\n")
}

// EvalAnnotations are workflow commands of GitHub Actions: one for each case that did not pass, and each regression.
func EvalAnnotations(e *api.Eval) []string {
	var out []string
	add := func(line int, title, text string) {
		out = append(out, fmt.Sprintf("::error file=%s,line=%d,title=%s::%s", inCommand.Replace(e.Suite), line, inCommand.Replace(title), inMessage.Replace(text)))
	}
	lines := map[string]int{}
	for i := range e.Cases {
		c := &e.Cases[i]
		if lines[c.Name] = c.Line; c.Verdict != api.EvalPassed && c.Verdict != api.EvalOpen && len(out) < evalShown {
			add(c.Line, c.Name, string(c.Verdict)+": "+OneLine(c.Why, 500))
		}
	}
	for i, r := range e.Regressions {
		if i == evalShown {
			break
		}
		add(lines[r.Case], r.Case, "worse than the baseline, "+r.Kind+": "+OneLine(r.Old, 200)+" → "+OneLine(r.New, 200))
	}
	return out
}

// What a workflow command of GitHub Actions has escaped, in its properties and in its text.
var (
	inCommand = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ",", "%2C", ":", "%3A")
	inMessage = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
)

// ShowCases lists the cases of a suite.
func (p *Printer) ShowCases(cases []api.EvalListed) error {
	var s strings.Builder
	wide := 0
	for _, c := range cases {
		wide = max(wide, len([]rune(inLine(c.Name, nameMax))))
	}
	for _, c := range cases {
		line := fmt.Sprintf("%-*s", min(wide, 50), inLine(c.Name, nameMax))
		if c.N > 1 {
			line += fmt.Sprintf("  n %d, pass %g", c.N, c.Pass)
		}
		if c.Tape != "" {
			line += "  tape " + Visible(c.Tape)
		}
		if len(c.Tags) > 0 {
			line += "  " + p.Out.Dim(Visible(strings.Join(c.Tags, ", ")))
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := fmt.Fprint(p.Out, s.String())
	return err
}
