package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"wf/daemon"
)

// defaultHub is where a hub listens if nothing else is said.
const defaultHub = "127.0.0.1:8766"

func newHub(a *app) *cobra.Command {
	var o daemon.HubOptions
	var lines logging
	var newWorker string
	var login bool
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Bring workers and those who follow them together",
		Long: `Start a hub. Workers (wf serve --hub) dial out to it; browsers and wf --hub see the runs of all of them
and start new ones, which go to a worker that has the workflow. The hub keeps a queue, the workers and which
worker has which run, and nothing of what is in the runs: those stay with their workers, and jobs that wait are
sealed to them. It may be stopped and started at any time, even with an empty disk.

A token is wanted always, beyond this machine TLS as well. Workers have a token of their own: one that all of
them share, or one for each (--new-agent), with which no other worker can take its name or its runs.`,
		Example: `  wf hub
  wf serve --hub http://127.0.0.1:8766 --hub-token-file ~/.local/state/wf/hub/agent.token

  # a token for one worker alone, also while the hub runs
  wf hub --new-agent desk-1

  # another address for a browser, from the hub that runs
  wf hub --login

  # what waits, and why
  wf hub jobs

  # two hubs that serve one fleet, each on its machine with the same tokens
  wf hub --data "postgres://wf@db.example.org/wf?sslmode=verify-full" --listen 0.0.0.0:443 --host a.example.org --tls-cert hub.pem --tls-key hub.key

  # for other machines
  wf hub --listen 0.0.0.0:443 --host hub.example.org --tls-cert hub.pem --tls-key hub.key`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case newWorker != "":
				path, err := o.NewWorker(newWorker)
				if err == nil {
					_, err = fmt.Fprintln(a.Out, path)
				}
				return err
			case login:
				server, err := o.Dial()
				if err != nil {
					return err
				}
				return a.newCode(cmd.Context(), server)
			}
			var err error
			if o.Log, err = lines.open(a); err != nil {
				return err
			}
			return a.serveHub(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Addresses, "listen", []string{defaultHub}, "where: PORT, HOST:PORT or unix:PATH; may be given several times")
	flags.StringVar(&o.Data, "data", "", "directory of queue, tokens and pointers (default: in the user's state directory); or postgres://… for queue and pointers of hubs that serve one fleet")
	flags.StringVar(&o.State, "state", "", "directory of tokens and socket, where --data is a database (default: in the user's state directory)")
	flags.StringVar(&o.Name, "name", "", "name of this hub (default: that of the machine)")
	flags.StringVar(&o.TokenFile, "token-file", "", "file with the tokens, mode 0600; made if it is not there")
	flags.StringVar(&o.Cert, "tls-cert", "", "certificate, for TLS")
	flags.StringVar(&o.Key, "tls-key", "", "its key")
	flags.StringVar(&o.ClientCA, "client-ca", "", "certificate (PEM) that must have signed that of every worker; their token is wanted all the same")
	flags.StringArrayVar(&o.Hosts, "host", nil, "a further name that the hub goes by")
	flags.StringArrayVar(&o.Origins, "origin", nil, "a further origin that may send requests, such as https://wf.example.org")
	flags.StringArrayVar(&o.Proxies, "trusted-proxy", nil, "address or CIDR block of a reverse proxy whose X-Forwarded-For says where requests come from; may be given several times")
	flags.StringVar(&newWorker, "new-agent", "", "make a token that is good for the worker with this id alone, print its file, and end")
	flags.BoolVar(&login, "login", false, "print a new address for a browser, from the hub that runs at --listen, and end")
	cmd.AddCommand(hubCommands(a)...)
	lines.flags(flags)
	return cmd
}

func (a *app) serveHub(ctx context.Context, o daemon.HubOptions) error {
	o.Version = version()
	h, err := daemon.OpenHub(ctx, o)
	if err != nil {
		return err
	}
	where, err := h.Where()
	if err == nil {
		err = a.ShowHub(where)
	}
	if err == nil {
		err = h.Wait(ctx)
	}
	return errors.Join(err, h.Close())
}
