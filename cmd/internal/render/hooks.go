package render

import (
	"cmp"
	"fmt"
	"strings"

	"wf/api"
)

// hooksShown is how many deliveries of a sink a person is shown.
const hooksShown = 20

// momentOf is what a notification is about.
func momentOf(d *api.Delivery) string {
	switch {
	case d.Reminder > 0:
		return fmt.Sprintf("%s, reminder %d", d.On, d.Reminder)
	case d.Escalated > 0:
		return fmt.Sprintf("%s, escalated", d.On)
	}
	return string(d.On)
}

// ShowHooks lists sinks of notifications with what is not delivered.
func (p *Printer) ShowHooks(h *api.Hooks) error {
	if len(h.Sinks) == 0 {
		p.Progress("no sink is configured: notify: in the config or in a workflow names one (wf help language)")
		return nil
	}
	for _, s := range h.Sinks {
		var on []string
		for _, m := range s.On {
			on = append(on, string(m))
		}
		line := fmt.Sprintf("%s  %d delivered, %d waiting, %d dead", p.Out.Bold(Visible(s.Name)), s.Delivered, s.Waiting, s.Dead)
		if s.To != "" {
			line += "  " + p.Out.Dim(OneLine(cmp.Or(strings.Join(on, " "), "everything")+" to "+s.To, 100))
		}
		if _, err := fmt.Fprintln(p.Out, line); err != nil {
			return err
		}
		rows := [][]string{}
		for i, d := range s.Deliveries {
			if i == hooksShown {
				rows = append(rows, []string{"  " + p.Out.Dim(fmt.Sprintf("and %d more: -o json lists all", len(s.Deliveries)-i))})
				break
			}
			state := "waiting"
			switch {
			case d.Dead:
				state = p.Out.Red("dead")
			case d.Next != nil:
				state = "again " + *d.Next
			}
			rows = append(rows, []string{"  " + d.ID, momentOf(&d), string(d.Run), fmt.Sprint(d.Seq), state, OneLine(Visible(d.Error), 100)})
		}
		if err := Table(p.Out, rows); err != nil {
			return err
		}
	}
	return nil
}
