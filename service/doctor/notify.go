package doctor

import (
	"context"
	"fmt"
	"os"

	"wf/agentkit/config"
	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/notify"
)

// checkSinks looks at where notifications go, and at what did not get there.
func checkSinks(ctx context.Context, u *compose.Setup) (out []api.Checkup) {
	sinks, err := u.Sinks()
	if err != nil {
		return nil // told with the config
	}
	state := map[string]api.Hook{}
	if dir, _, err := u.StoreDir(); err == nil && compose.HoldsStore(dir) {
		err = u.WithStore(ctx, func(s *cas.Store) error {
			all, err := notify.List(ctx, s, sinks, api.NotificationQuery{})
			if err == nil {
				for _, h := range all.Hooks().Sinks {
					state[h.Name] = h
				}
			}
			return err
		})
		if err != nil {
			return []api.Checkup{bad(api.Checkup{Name: "notify"}, err)}
		}
	}
	for _, s := range sinks {
		c := checkSink(state[s.Journal], api.Checkup{Name: "notify " + s.Journal, State: "ok", Text: config.Where(s.Sink)})
		if why := notify.Usable(s.Sink, os.LookupEnv); why != "" {
			c.State, c.Text, c.Fix = "note", c.Text+"; "+why, "put that right where wf serve runs"
		}
		out = append(out, c)
		delete(state, s.Journal)
	}
	for name, h := range state { // of workflows, and of configs that are no longer there
		if h.Dead > 0 {
			out = append(out, checkSink(h, api.Checkup{Name: "notify " + name, State: "ok", Text: "named by a workflow, or no longer by a config"}))
		}
	}
	return out
}

func checkSink(h api.Hook, c api.Checkup) api.Checkup {
	c.Text += fmt.Sprintf("; %d delivered", h.Delivered)
	if h.Waiting > 0 {
		c.Text += fmt.Sprintf(", %d waiting", h.Waiting)
	}
	if h.Dead > 0 {
		c.State, c.Fix = "note", "wf hook ls shows why; wf hook retry --all attempts them again"
		c.Text += fmt.Sprintf(", %s dead after three days: %s", protocol.Plural(h.Dead, "notification"), h.Deliveries[len(h.Deliveries)-1].Error)
	}
	return c
}
