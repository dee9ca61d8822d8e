package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/daemon"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/protocol"
	"wf/store"
)

func newServe(a *app) *cobra.Command {
	var o daemon.Options
	var at daemon.ListenOptions
	var hub daemon.Remote
	var hubs []string
	var lines logging
	var login bool
	var has []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Drive runs in the background, and answer for them over HTTP",
		Long: `Drive the runs of a store as a daemon: start them over HTTP, answer, cancel, resume and fork them, follow
them live, and start those that have a schedule. Runs that were cut off go on when it starts; stopping it
suspends what runs, and the next start goes on.

It listens on a unix socket that only its user can reach. A TCP address is opt-in and wants a token, on this
machine too; beyond it TLS as well. For browsers it prints an address with a code that is good once.`,
		Example: `  wf serve
  wf serve --listen 127.0.0.1:8765

  # both, with the workflows of a directory
  wf serve --listen unix --listen 8765 --workflows ./workflows

  # the worker that has what roles with needs: [gpu] wait for
  wf serve --has gpu

  # under a supervisor that collects logs and metrics
  wf serve --listen 127.0.0.1:8765 --log json -o json

  # as a worker of a hub
  wf serve --hub http://127.0.0.1:8766 --hub-token-file agent.token

  # of two hubs that serve one fleet
  wf serve --hub https://a.example.org --hub https://b.example.org --hub-token-file agent.token

  # another address for a browser, from the daemon that runs
  wf serve --login`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if login {
				return a.login(cmd.Context())
			}
			name, _, err := a.StoreName()
			if err != nil {
				return err
			}
			hub.URL = strings.Join(hubs, ",")
			if hub.Capacity < 0 || hub.Capacity > 0 && hub.URL == "" && !store.IsDatabase(name) {
				return usagef("--capacity %d: it is a number from 1, for the jobs of a --hub or the runs of a database", hub.Capacity)
			}
			o.Drives = hub.Capacity
			all, err := protocol.ParseHas(strings.Join(append(has, a.Has...), ","))
			if err != nil {
				return usagef("--has: %v", err)
			}
			a.Has = all
			if o.Log, err = lines.open(a); err != nil {
				return err
			}
			return a.WithNewStore(cmd.Context(), func(s store.Store) error { return a.serve(cmd.Context(), s, o, at, hub) })
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&at.Addresses, "listen", []string{"unix"}, "where: unix, unix:PATH, PORT, or HOST:PORT; may be given several times")
	flags.StringArrayVar(&o.Workflows, "workflows", nil, "directory of workflows that can be started (default: those of the project)")
	flags.StringVar(&o.Dir, "dir", "", "workspace in which the runs that it starts work (default: here)")
	flags.StringVar(&o.Name, "name", "", "name of this worker (default: that of the machine)")
	flags.StringVar(&at.TokenFile, "token-file", "", "file with the tokens, mode 0600; made if it is not there")
	flags.StringVar(&at.Cert, "tls-cert", "", "certificate, for TLS")
	flags.StringVar(&at.Key, "tls-key", "", "its key")
	flags.StringArrayVar(&at.Hosts, "host", nil, "a further name that the server goes by")
	flags.StringArrayVar(&at.Origins, "origin", nil, "a further origin that may send requests, such as https://wf.example.org")
	flags.StringArrayVar(&at.Proxies, "trusted-proxy", nil, "address or CIDR block of a reverse proxy whose X-Forwarded-For says where requests come from; may be given several times")
	flags.StringVar(&o.OTLP, "otlp", "", "send the traces of runs, as they end, to this collector of OpenTelemetry, such as http://127.0.0.1:4318")
	flags.StringArrayVar(&has, "has", nil, "what this worker has that roles need, such as gpu,docker (WF_HAS=NAME,… for any command)")
	flags.BoolVar(&login, "login", false, "print a new address for a browser, from the daemon that runs, and end")
	flags.StringArrayVar(&hubs, "hub", nil, "connect to this hub, so that others can follow and start runs here; may be given several times, for hubs that serve one fleet")
	flags.StringVar(&hub.TokenFile, "hub-token-file", "", "file with the token for workers of the hub")
	flags.StringVar(&hub.CA, "hub-ca", "", "certificate (PEM) that signed the hub's, instead of those of the system")
	flags.StringVar(&hub.Cert, "hub-cert", "", "certificate of this worker, for a hub with --client-ca")
	flags.StringVar(&hub.Key, "hub-key", "", "its key")
	flags.IntVar(&hub.Capacity, "capacity", 0, "how many runs may be driven here when the hub gives this worker another one (default: twice the CPUs, at least 4), or it takes another one of a database (default: 256)")
	flags.BoolVar(&hub.Admin, "hub-admin", false, "let those of scope admin at the hub do here what needs it: import archives, bring definitions, choose any model")
	lines.flags(flags)
	a.driveFlags(flags)
	return cmd
}

func (a *app) serve(ctx context.Context, s store.Store, o daemon.Options, at daemon.ListenOptions, hub daemon.Remote) error {
	d, err := daemon.New(a.Setup, s, o)
	if err != nil {
		return err
	}
	serving, err := d.Serve(ctx, at)
	if err != nil {
		return err
	}
	if hub.URL != "" {
		err = serving.Join(hub)
	}
	if err == nil {
		err = a.tellServing(serving)
	}
	if err == nil {
		err = serving.Wait(ctx)
	}
	a.Tell("stopping: runs are suspended, the next wf serve goes on with them")
	return errors.Join(err, serving.Close())
}

// tellServing says where a daemon listens, and which workflows wait for trust.
func (a *app) tellServing(s *daemon.Serving) error {
	where, err := s.Where()
	if err == nil {
		err = a.ShowServing(where, guard.DefaultTCP)
	}
	if err != nil {
		return err
	}
	all, err := s.Service.Catalog.List()
	for _, f := range all {
		if len(f.Waits) > 0 {
			a.Tell(fmt.Sprintf("  %s waits for trust: wf trust %s", f.Name, protocol.ShellWord(f.Path)))
		}
	}
	return err
}

// login has the daemon of the store make a code, and prints the address with it.
func (a *app) login(ctx context.Context) error {
	dir, err := a.Beside(ctx)
	if err != nil {
		return err
	}
	server, socket, err := daemon.Dial(dir)
	if err != nil {
		return err
	}
	if err = a.newCode(ctx, server); errors.Is(err, client.ErrUnreachable) {
		return fmt.Errorf("socket %s: %w", socket, daemon.ErrNone)
	}
	return err
}

// newCode has a server make a code, and prints what to open.
func (a *app) newCode(ctx context.Context, server *client.API) error {
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, daemon.AskTime)
	defer cancel()
	code, err := server.NewCode(ctx)
	if err != nil {
		return err
	}
	return a.ShowCode(code.URLs, code.Expires)
}
