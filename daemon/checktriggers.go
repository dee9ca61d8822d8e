package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"wf/api"
	"wf/hub/client"
	"wf/protocol"
)

// Served asks the daemon of a store for its workflows: none where there is no daemon; "" is no store.
func Served(ctx context.Context, store string) ([]api.Workflow, error) {
	if store == "" {
		return nil, nil
	}
	server, _, err := Dial(store)
	if err != nil {
		return nil, nil // told with the store
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	all, err := client.Service{API: server}.Workflows(ctx)
	if errors.Is(err, client.ErrUnreachable) {
		return nil, nil
	}
	return all, err
}

// CheckTriggers tells which schedules and webhooks a daemon does not serve, and why, by what Served gave. Nothing is said where
// there is no trigger.
func CheckTriggers(all []api.Workflow, err error) []api.Checkup {
	c := api.Checkup{Name: "triggers", State: "ok"}
	if err != nil {
		c.State, c.Text, c.Fix = "note", err.Error(), protocol.HintOf(err)
		return []api.Checkup{c}
	}
	served, stopped := 0, false
	var closed []string
	for _, w := range all {
		stopped = stopped || w.Stopped != nil
		if w.ScheduleProblem != "" {
			closed = append(closed, fmt.Sprintf("the schedule of %s: %s", w.Name, w.ScheduleProblem))
		}
		if w.WebhookProblem != "" {
			closed = append(closed, fmt.Sprintf("the webhook of %s: %s", w.Name, w.WebhookProblem))
		}
		switch {
		case w.ScheduleProblem+w.WebhookProblem != "":
		case w.Waits && (w.Schedule != nil || w.Webhook != ""):
			closed = append(closed, w.Name+": "+w.Problem)
		case w.Schedule != nil || w.Webhook != "":
			served++
		}
	}
	if served == 0 && closed == nil {
		return nil
	}
	c.Text = protocol.Plural(served, "workflow") + " with a schedule or a webhook"
	if closed != nil {
		c.State, c.Fix = "note", "wf trust FILE; a secret is set in the environment of wf serve, which is then started again"
		c.Text += "; not served: " + strings.Join(closed, "; ")
	}
	if stopped {
		c.State, c.Fix = "bad", "do what is named; a schedule or a webhook that is not wanted any more is taken out of its file, or the file is removed"
	}
	return []api.Checkup{c}
}
