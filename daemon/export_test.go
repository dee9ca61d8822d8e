package daemon

import (
	"context"

	"wf/hub/relay"
)

// ToldToHubs are the runs of a daemon as a hub hears of them.
func ToldToHubs(ctx context.Context, d *Daemon) ([]relay.Run, error) {
	return newHubStore(d.Service, d.Supervisor).Runs(ctx)
}
