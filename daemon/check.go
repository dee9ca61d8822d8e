package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wf/api"
	"wf/hub/client"
	"wf/protocol"
)

// AskTime is how long a server may take to answer a question of a command.
const AskTime = 5 * time.Second

// Check asks the daemon of a store, if there is one; "" is no store.
func Check(ctx context.Context, store string) api.Checkup {
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
