package render

import (
	"cmp"
	"fmt"
	"strings"

	"wf/api"
	"wf/protocol"
)

// hooksShown is how many deliveries of a sink a person is shown.
const hooksShown = 20

// momentOf is what a notification is about.
func momentOf(d *api.Notified) string {
	switch {
	case d.Reminder > 0:
		return fmt.Sprintf("%s, reminder %d", d.On, d.Reminder)
	case d.Escalated > 0:
		return fmt.Sprintf("%s, escalated", d.On)
	case d.Trigger != nil:
		return Visible(fmt.Sprintf("%s of %s %s", d.Trigger.Kind, d.Trigger.Workflow, d.Trigger.State))
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
			rows = append(rows, []string{"  " + d.ID, momentOf(&d.Notified), string(d.Run), fmt.Sprint(d.Seq), state, OneLine(Visible(d.Error), 100)})
		}
		if err := Table(p.Out, rows); err != nil {
			return err
		}
	}
	return nil
}

// ShowNotifications lists deliveries about a run, the newest first.
func (p *Printer) ShowNotifications(l *api.NotificationList) error {
	if len(l.Items) == 0 {
		p.Progress("no notification is about this run")
		return nil
	}
	rows := [][]string{}
	for _, n := range l.Items {
		state, at := n.Status, n.Due
		switch {
		case n.Delivered != nil:
			at = *n.Delivered
		case n.Status == api.NotificationDead:
			state = p.Out.Red(state)
		case n.Next != nil:
			state, at = "again", *n.Next
		}
		about := momentOf(&n.Notified)
		if n.Step != "" {
			about += " " + Visible(n.Step)
		}
		rows = append(rows, []string{n.ID, about, Visible(n.Sink), state, at, OneLine(Visible(n.Error), 100)})
	}
	return Table(p.Out, rows)
}

// ShowNotified says how many notifications are about a run, where there are any.
func (p *Printer) ShowNotified(run protocol.RunID, l *api.NotificationList) error {
	count := map[string]int{}
	for _, n := range l.Items {
		count[n.Status]++
	}
	var parts []string
	for _, status := range []string{api.NotificationDelivered, api.NotificationWaiting, api.NotificationDead} {
		if n := count[status]; n > 0 {
			part := fmt.Sprintf("%d %s", n, status)
			if status == api.NotificationDead {
				part = p.Out.Red(part)
			}
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(p.Out, "  %s  %s  %s\n", p.Out.Dim("notifications"), strings.Join(parts, ", "), p.Out.Dim(p.Commands(wf("hook", "ls", "--run", string(run)))))
	return err
}
