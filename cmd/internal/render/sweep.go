package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// A SweepScreen shows a sweep under way: on a terminal its table, drawn anew, else a line for each trial that begins or ends.
type SweepScreen struct {
	p     *Printer
	drawn int
	last  *api.Sweep
}

// NewSweepScreen is that of a printer.
func NewSweepScreen(p *Printer) *SweepScreen { return &SweepScreen{p: p} }

// Tell is called at the beginning without a trial, and with each that begins or ends.
func (x *SweepScreen) Tell(s *api.Sweep, t *api.SweepTrial) {
	p := x.p
	switch {
	case p.Format == "jsonl" && t == nil:
		_ = WriteLine(p.Out, api.SweepEvent{Type: "begin", Sweep: s})
	case p.Format == "jsonl":
		_ = WriteLine(p.Out, api.SweepEvent{Type: "trial", Trial: t}) // the answer at the end tells whether it can be written
	case p.AsJSON() || p.Quiet:
	case p.Err.TTY && !p.Verbose:
		x.last = s
		x.draw()
	case t != nil:
		p.Progress("%s", p.sweepLine(s, t))
	}
}

// draw shows the table in the place of the one before.
func (x *SweepScreen) draw() {
	width, height := x.p.Err.Size()
	var b strings.Builder
	if err := Table(&b, sweepRows(x.last, x.p.Err.Paint)); err != nil {
		return
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if most := max(2, height-3); len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("… and %d more", len(lines)-most+1))
	}
	done, cost := 0, ""
	for _, t := range x.last.Trials {
		if t.State != api.SweepOpen && t.State != api.SweepRuns {
			done++
		}
	}
	if c := x.last.Usage.CostUSD; c != nil && *c > 0 {
		cost = fmt.Sprintf(" · $%.4f", *c)
	}
	lines = append(lines, fmt.Sprintf("─ %d of %s%s · Ctrl-C stops safely", done, protocol.Plural(len(x.last.Trials), "trial"), cost))
	for i, line := range lines {
		lines[i] = plain.Cut(line, width-1, "…")
	}
	x.p.Err.redraw(x.drawn, strings.Join(lines, "\n")+"\n")
	x.drawn = len(lines)
}

// Close wipes the table.
func (x *SweepScreen) Close() {
	if x.drawn > 0 {
		x.p.Err.redraw(x.drawn, "")
		x.drawn = 0
	}
}

// sweepLine tells of one trial.
func (p *Printer) sweepLine(s *api.Sweep, t *api.SweepTrial) string {
	what := fmt.Sprintf("%s %d/%d", cellName(s, &s.Cells[t.Cell]), t.N, s.N)
	if t.State == api.SweepRuns || t.State == api.SweepOpen {
		return fmt.Sprintf("  %-7s %s  run %s", t.State, what, t.Run)
	}
	line := fmt.Sprintf("  %s %s", p.sweepState(t.State), what)
	if t.Run != "" {
		line += "  run " + string(t.Run)
	}
	if t.Score != nil {
		line += "  score " + score(t.Score)
	}
	if cost := dollars(t.Usage); cost != "" {
		line += "  " + cost
	}
	line += "  " + Span(time.Duration(t.MS)*time.Millisecond)
	if t.State != api.SweepPassed || p.Verbose {
		line += "  " + OneLine(t.Why, 160)
	}
	return line
}

func (p *Printer) sweepState(s api.SweepState) string {
	text := fmt.Sprintf("%-7s", s)
	switch s {
	case api.SweepPassed:
		return p.Err.Green(text)
	case api.SweepFailed:
		return p.Err.Red(text)
	}
	return p.Err.Yellow(text)
}

// ShowSweep writes the table, and what the trials share.
func (p *Printer) ShowSweep(s *api.Sweep) error {
	if p.Format == "jsonl" {
		return p.answerLine(api.SweepEvent{Type: "sweep", Sweep: s})
	}
	if p.AsJSON() {
		return p.Answer(s)
	}
	if err := Table(p.Out, sweepRows(s, p.Out.Paint)); err != nil {
		return err
	}
	var b strings.Builder
	done, remembered := 0, 0
	for _, t := range s.Trials {
		if t.State.Completed() {
			done++
		}
		if t.Remembered {
			remembered++
		}
	}
	fmt.Fprintf(&b, "%d of %s completed", done, protocol.Plural(len(s.Trials), "trial"))
	if remembered > 0 {
		fmt.Fprintf(&b, ", %d of them before", remembered)
	}
	if cost := dollars(s.Usage); cost != "" {
		b.WriteString("; " + cost)
		if s.Of != nil {
			b.WriteString(" behind the fork point")
		}
	}
	if s.Of != nil && s.Of.Shared.Calls > 0 {
		fmt.Fprintf(&b, "; all share %s of run %s until %s: %s, %d→%d tokens", protocol.Plural(s.Of.Shared.Calls, "call"), s.Of.Run, s.Of.Step, dollars(s.Of.Shared), s.Of.Shared.Input, s.Of.Shared.Output)
	}
	fmt.Fprintf(&b, "\nruns   %s\n", p.Commands(wf("ls", "--tag", s.Tag)))
	_, err := fmt.Fprint(p.Out, b.String())
	return err
}

// sweepRows are a line for each cell; columns in which nothing stands are left out.
func sweepRows(s *api.Sweep, paint Paint) [][]string {
	columns := []struct {
		name string
		of   func(*api.SweepCell) string
	}{
		{"model", func(c *api.SweepCell) string { return Visible(modelsText(c.Models)) }},
		{"definition", func(c *api.SweepCell) string {
			if len(s.Definitions) == 1 {
				return ""
			}
			return Visible(s.Definitions[c.Definition].Name)
		}},
		{"inputs", func(c *api.SweepCell) string { return Visible(inputsText(c.Inputs)) }},
		{"n", func(c *api.SweepCell) string { return strconv.Itoa(c.Pass.N) }},
		{"pass", passText},
		{"score", func(c *api.SweepCell) string { return score(c.Score) }},
		{"cost", func(c *api.SweepCell) string { return dollars(c.Usage) }},
		{"tokens", tokensText},
		{"cached", cachedText},
		{"time", func(c *api.SweepCell) string {
			if c.Pass.N == 0 {
				return ""
			}
			return Span(time.Duration(c.MeanMS) * time.Millisecond)
		}},
		{"errors", func(c *api.SweepCell) string { return nonzero(c.Errors) }},
		{"cut", func(c *api.SweepCell) string { return nonzero(c.Cut) }},
		{"open", func(c *api.SweepCell) string { return nonzero(c.Open) }},
	}
	rows := make([][]string, 1+len(s.Cells))
	for _, c := range columns {
		texts, some := make([]string, len(s.Cells)), false
		for i := range s.Cells {
			texts[i] = c.of(&s.Cells[i])
			some = some || texts[i] != ""
		}
		if !some {
			continue
		}
		rows[0] = append(rows[0], paint.Dim(c.name))
		for i, text := range texts {
			rows[1+i] = append(rows[1+i], text)
		}
	}
	return rows
}

// cellName names a cell in a line.
func cellName(s *api.Sweep, c *api.SweepCell) string {
	var parts []string
	if m := modelsText(c.Models); m != "" {
		parts = append(parts, m)
	}
	if len(s.Definitions) > 1 {
		parts = append(parts, s.Definitions[c.Definition].Name)
	}
	if in := inputsText(c.Inputs); in != "" {
		parts = append(parts, in)
	}
	if len(parts) == 0 {
		return "trial"
	}
	return OneLine(strings.Join(parts, " "), 120)
}

// modelsText are the models of a cell.
func modelsText(models map[string]string) string {
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(models)) {
		if role == "" {
			parts = append(parts, models[role])
		} else {
			parts = append(parts, role+"="+models[role])
		}
	}
	return strings.Join(parts, " ")
}

// inputTextMax is how much of an input a table shows, in letters.
const inputTextMax = 24

func inputsText(raw protocol.JSON) string {
	var inputs map[string]json.RawMessage
	if json.Unmarshal(raw, &inputs) != nil {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		text := string(inputs[name])
		var s string
		if json.Unmarshal(inputs[name], &s) == nil {
			text = s
		}
		parts = append(parts, name+"="+OneLine(text, inputTextMax))
	}
	return strings.Join(parts, " ")
}

// passText is a pass rate, with its interval where it has one.
func passText(c *api.SweepCell) string {
	r := c.Pass
	if r.N == 0 {
		return ""
	}
	text := fmt.Sprintf("%d/%d", r.Passed, r.N)
	if r.Low != nil && r.High != nil {
		text += fmt.Sprintf(" %.0f–%.0f %%", 100**r.Low, 100**r.High)
	}
	return text
}

func cachedText(c *api.SweepCell) string {
	if c.Usage.Input == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(c.Usage.Cached)/float64(c.Usage.Input))
}

// tokensText are the tokens that went in and came out.
func tokensText(c *api.SweepCell) string {
	if c.Usage.Calls == 0 {
		return ""
	}
	return fmt.Sprintf("%d→%d", c.Usage.Input, c.Usage.Output)
}

// dollars is what calls cost, "" without calls.
func dollars(u api.SweepUsage) string {
	if u.Calls == 0 {
		return ""
	}
	if u.CostUSD == nil {
		return "unknown cost"
	}
	return fmt.Sprintf("$%.4f", *u.CostUSD)
}

func score(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(math.Round(*x*1e4)/1e4, 'g', -1, 64)
}

func nonzero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
