package render

import (
	"fmt"

	"wf/api"
)

// ShowBackfill writes what became of the firings of a schedule.
func (p *Printer) ShowBackfill(b *api.Backfill) error {
	rows := p.head("due", "firing", "run", "status")
	counts := map[api.FiringState]int{}
	for _, f := range b.Firings {
		counts[f.State]++
		run := string(f.Run)
		if f.State == api.FiringMissed || f.State == api.FiringFailed {
			run = "" // there is none
		}
		rows = append(rows, []string{f.Due, string(f.State), run, string(f.Status)})
	}
	if len(b.Firings) > 0 {
		if err := Table(p.Out, rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.Out, "%s: %d firings, %d started before, %d started now, %d missed\n", Visible(b.Workflow), len(b.Firings),
		counts[api.FiringBefore]+counts[api.FiringDeleted], counts[api.FiringStarted], counts[api.FiringMissed]+counts[api.FiringFailed])
	return err
}
