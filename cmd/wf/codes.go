package main

import (
	"context"
	"fmt"
	"time"

	"wf/hub/client"
)

// askDaemon is how long a server may take to make a code.
const askDaemon = 5 * time.Second

// newCode has the server behind api make a code, and prints what to open.
func (a *app) newCode(ctx context.Context, server *client.API) error {
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	code, err := server.NewCode(ctx)
	if err != nil {
		return err
	}
	if a.AsJSON() {
		return a.Answer(map[string]any{"schema": "wf.login/v1", "open": code.URLs, "expires": code.Expires})
	}
	for _, u := range code.URLs {
		if _, err := fmt.Fprintln(a.Out, u); err != nil {
			return err
		}
	}
	return nil
}
