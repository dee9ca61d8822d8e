package daemon

import (
	"fmt"
	"time"

	"wf/api"
	"wf/files"
	"wf/hub/hook"
	"wf/protocol"
	"wf/service/compose"
)

// CheckEvents tells of events of webhooks that wait beside a store; "" is no store. Nothing is said where none does.
func CheckEvents(u *compose.Setup, beside string) []api.Checkup {
	if beside == "" || !files.Exists(eventsIn(beside)) {
		return nil
	}
	c := api.Checkup{Name: "events", State: "note"}
	key, err := u.KeptSeal(eventsKey)
	var left hook.Left
	if err == nil {
		left, err = hook.Look(eventsIn(beside), key)
	}
	switch {
	case err != nil:
		c.State, c.Text, c.Fix = "bad", "the events of webhooks that wait cannot be read: "+err.Error(), protocol.HintOf(err)
	case left == hook.Left{}:
		return nil
	case left.Lost > 0:
		c.State, c.Fix = "bad", "look into "+eventsIn(beside)+"; at the service that sends, deliver again what has begun no run"
		c.Text = fmt.Sprintf("%d bytes cannot be read: they are damaged, or another user wrote them; ", left.Lost)
		fallthrough
	default:
		c.Text += fmt.Sprintf("%s of webhooks (%d bytes) wait for their runs to begin", protocol.Plural(left.Events, "event"), left.Bytes)
		if left.Events > 0 {
			c.Text += ", the oldest since " + left.Oldest.UTC().Format(time.RFC3339)
		}
		if c.Fix == "" {
			c.Fix = "wf serve begins them; where it runs, its log says what they wait for"
		}
	}
	return []api.Checkup{c}
}
