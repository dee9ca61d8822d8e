package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"wf/api"
)

// ShowRun writes a run with its steps, questions and outputs, as wf show does.
func (p *Printer) ShowRun(v *api.Run) error {
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
	row("reason", v.Reason)
	row("state", state.Why())
	if v.Foreign {
		row("origin", "from elsewhere: no process goes on with it before wf store adopt "+string(v.ID))
	}
	row("started", v.Started+" by "+cmp.Or(v.Info.CreatedBy, "someone"))
	if v.Info.ForkedFrom != nil {
		row("forked from", ShortOf(v.Info.ForkedFrom))
	}
	row("time", Span(time.Duration(v.ActiveMS)*time.Millisecond))
	row("workspace", v.Info.Workspace)
	if parent := v.Info.Parent; parent != nil {
		row("parent", string(parent.Run)+":"+parent.Step)
	}
	row("tags", strings.Join(v.Info.Tags, ", "))
	row("inputs", string(v.Info.Inputs))
	if err := Table(p.Out, rows); err != nil {
		return err
	}
	if v.Earlier > 0 {
		fmt.Fprintln(p.Out, "  "+p.Out.Dim(fmt.Sprintf("%d of %d steps; wf show %s --before %d shows earlier ones", len(v.Steps), v.Total, v.ID, v.Earlier)))
	}
	if err := p.stepTable(v.Steps); err != nil {
		return err
	}
	for _, w := range v.Waiting {
		if err := p.showQuestion(w); err != nil {
			return err
		}
	}
	if v.Result != nil && !noOutputs(v.Outputs) {
		fmt.Fprintln(p.Out, "  "+p.Out.Dim("outputs"))
		if err := p.showFields("  ", v.Outputs); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.Out, "  %s %s  seq %d\n  %s %s\n", p.Out.Dim("head"), v.Head, v.Seq, p.Out.Dim("next"), Next(v))
	return err
}
