package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/hub/client"
	"wf/protocol"
	"wf/service/compose"
)

// AskTime is how long a server may take to answer a question of a command.
const AskTime = 5 * time.Second

// Check asks the daemon of a store, if there is one; "" is no store.
func Check(ctx context.Context, u *compose.Setup, store string) api.Checkup {
	c := api.Checkup{Name: "daemon", State: "ok", Text: "none; wf serve starts one"}
	if store == "" {
		return c
	}
	server, socket, err := Dial(store)
	if err != nil {
		return c // told with the store
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	switch info, err := server.Info(ctx); {
	case errors.Is(err, client.ErrUnreachable):
		needed(u, store, &c)
	case err != nil:
		c.State, c.Text, c.Fix = "bad", err.Error(), protocol.HintOf(err)
	default:
		c.Text = fmt.Sprintf("%s (version %s) listens on %s", info.Name, info.Version, socket)
		if err := server.Ready(ctx); errors.Is(err, client.ErrNotReady) {
			c.State, c.Text, c.Fix = "bad", c.Text+", and does not take requests: it starts, ends, or cannot read its store", protocol.HintOf(err)
		}
	}
	return c
}

// needed says of a daemon that does not run what waits for it: the schedules and webhooks that one served.
func needed(u *compose.Setup, store string, c *api.Checkup) {
	dirs, known, err := knownBeside(store, func() ([]byte, error) { return u.KeptSeal(triggersKey) })
	switch {
	case err != nil:
		c.State, c.Text, c.Fix = "note", "none; which schedules and webhooks need one cannot be read: "+err.Error(), protocol.HintOf(err)
	case len(known) > 0:
		names := make([]string, len(known))
		for i, k := range known {
			names[i] = "the " + k.Kind + " of " + k.Workflow
		}
		slices.Sort(names)
		if more := len(names) - mostNeeded; more > 0 {
			names = append(names[:mostNeeded], fmt.Sprintf("%d more", more))
		}
		c.State, c.Text = "bad", "none, and so nothing starts: "+strings.Join(names, ", ")
		c.Fix = "wf serve"
		for _, dir := range dirs {
			c.Fix += " --workflows " + protocol.ShellWord(dir)
		}
	}
}

// mostNeeded is how many triggers are named.
const mostNeeded = 10
