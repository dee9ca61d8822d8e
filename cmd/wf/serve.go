package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/daemon"
)

// serveFlags are how a daemon listens and what it serves.
type serveFlags struct {
	listen    []string
	workflows []string
	dir       string
	name      string
	tokenFile string
	cert, key string
	hosts     []string
	origins   []string
	login     bool
	hub       reachFlags
}

func (f serveFlags) options() daemon.ListenOptions {
	return daemon.ListenOptions{Addresses: f.listen, TokenFile: f.tokenFile, Cert: f.cert, Key: f.key, Hosts: f.hosts, Origins: f.origins}
}

func newServe(a *app) *cobra.Command {
	var f serveFlags
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

  # as an agent of a hub
  wf serve --hub http://127.0.0.1:8766 --hub-token-file agent.token

  # another address for a browser, from the daemon that runs
  wf serve --login`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.login {
				return a.login(cmd.Context())
			}
			return a.serve(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.listen, "listen", []string{"unix"}, "where: unix, unix:PATH, PORT, or HOST:PORT; may be given several times")
	flags.StringArrayVar(&f.workflows, "workflows", nil, "directory of workflows that can be started (default: those of the project)")
	flags.StringVar(&f.dir, "dir", "", "workspace in which the runs that it starts work (default: here)")
	flags.StringVar(&f.name, "name", "", "name of this agent (default: that of the machine)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the tokens, mode 0600; made if it is not there")
	flags.StringVar(&f.cert, "tls-cert", "", "certificate, for TLS")
	flags.StringVar(&f.key, "tls-key", "", "its key")
	flags.StringArrayVar(&f.hosts, "host", nil, "a further name that the server goes by")
	flags.StringArrayVar(&f.origins, "origin", nil, "a further origin that may send requests, such as https://wf.example.org")
	flags.BoolVar(&f.login, "login", false, "print a new address for a browser, from the daemon that runs, and end")
	f.hub.join(flags)
	a.trustFlag(flags)
	return cmd
}

// serve runs a daemon until ctx ends.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	s, err := a.OpenStore(ctx)
	if err != nil {
		return err
	}
	return errors.Join(a.serveStore(ctx, s, f), s.Close())
}

func (a *app) serveStore(ctx context.Context, s *cas.Store, f serveFlags) error {
	log := a.newLog()
	d, err := daemon.New(a.Setup, s, daemon.Options{Name: f.name, Dir: f.dir, Workflows: f.workflows, Log: log})
	if err != nil {
		return err
	}
	listeners, keys, err := daemon.Listen(ctx, s.Dir(), f.options(), log)
	if err != nil {
		return err
	}
	if keys != nil {
		d.NewCode = daemon.CodeFor(keys, listeners)
	}
	d.Start()
	handler := d.Handler()
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- l.Serve(handler) }()
	}
	leave := func() {}
	if f.hub.url != "" {
		leave, err = a.joinHub(d, f.hub)
	}
	if err == nil {
		err = a.announce(d, listeners, keys)
	}
	if err == nil {
		err = a.tellWaiting(d.Service.Catalog)
	}
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	a.Progress("stopping: runs are suspended, the next wf serve goes on with them")
	leave()
	closed := d.Close()
	for _, l := range listeners {
		closed = errors.Join(closed, l.Close())
	}
	return errors.Join(err, closed)
}

// newLog writes what a daemon has to tell to stderr.
func (a *app) newLog() *slog.Logger {
	level := slog.LevelInfo
	if a.Quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}
