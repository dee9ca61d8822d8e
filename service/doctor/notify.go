package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"wf/agentkit/config"
	"wf/api"
	"wf/engine"
	"wf/engine/lint"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/notify"
	"wf/store"
)

// checkSinks looks at where notifications go, and at what did not get there.
func checkSinks(ctx context.Context, u *compose.Setup, served []string) (out []api.Checkup) {
	sinks, err := u.Sinks()
	if err != nil {
		return nil // told with the config
	}
	state := map[string]api.Hook{}
	if dir, _, err := u.StoreName(); err == nil && compose.HoldsStore(dir) {
		err = u.WithStore(ctx, func(s store.Store) error {
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
	known, err := workflows(ctx, u, sinks, served)
	if err != nil {
		return []api.Checkup{bad(api.Checkup{Name: "notify"}, err)}
	}
	for _, s := range sinks {
		c := checkSink(state[s.Journal], api.Checkup{Name: "notify " + s.Journal, State: "ok", Text: config.Where(s.Sink)})
		if why := notify.Usable(s.Sink, os.LookupEnv); why != "" {
			c.State, c.Text, c.Fix = "note", c.Text+"; "+why, "put that right where wf serve runs"
		}
		for _, name := range s.Workflows {
			if slices.Contains(known, name) {
				continue
			}
			c.Text += fmt.Sprintf("; it is for the workflow %q, which is not served here and had no run lately", name)
			c.State, c.Fix = "note", "correct the name under workflows: of "+s.Name+" in "+configOf(u, s)
			if near := lint.Nearest(name, known, 3); near != "" {
				c.Fix += fmt.Sprintf(": did you mean %q?", near)
			}
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

// workflows are the names of those that there are: in the project, at its daemon, and, where sinks name others, of runs that moved lately.
func workflows(ctx context.Context, u *compose.Setup, sinks []notify.Configured, served []string) ([]string, error) {
	dir, _, err := u.StoreName()
	if err != nil || !slices.ContainsFunc(sinks, func(c notify.Configured) bool { return len(c.Workflows) > 0 }) {
		return nil, nil // what is wrong with the store is told with it
	}
	catalog, err := u.NewCatalog(nil, dir)
	if err != nil {
		return nil, err
	}
	found, err := catalog.List()
	if err != nil {
		return nil, err
	}
	known := slices.Clone(served)
	for _, f := range found {
		known = append(known, f.Name)
	}
	strange := func(c notify.Configured) bool {
		return slices.ContainsFunc(c.Workflows, func(name string) bool { return !slices.Contains(known, name) })
	}
	if !slices.ContainsFunc(sinks, strange) || !compose.HoldsStore(dir) {
		return known, nil
	}
	err = u.WithStore(ctx, func(s store.Store) error {
		heads, err := s.Newest(ctx)
		e := &engine.Engine{Store: s}
		for _, h := range heads {
			if time.Since(time.UnixMicro(h.TS)) > lookedBack || !slices.ContainsFunc(sinks, strange) {
				break
			}
			if st, err := e.State(ctx, protocol.RunOf(h.Name)); err == nil { // wf verify tells of what is damaged
				known = append(known, st.Program().Workflow.Name)
			}
		}
		return err
	})
	return known, err
}

// configOf is the file that configures a sink.
func configOf(u *compose.Setup, s notify.Configured) string {
	if loaded, err := u.Config(); err == nil && loaded.Project != nil && s.Journal == notify.ProjectSink(s.Name) {
		return loaded.Project.Path
	}
	return compose.UserConfig()
}
