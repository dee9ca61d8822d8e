package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"wf/cas"
	sockets "wf/daemon"
	"wf/hub/guard"
	"wf/hub/server"
	"wf/service/compose"
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
	d, err := a.newDaemon(s, f, log)
	if err != nil {
		return err
	}
	doors, keys, err := a.openDoors(ctx, s, f, log)
	if err != nil {
		return err
	}
	if keys != nil {
		d.api.NewCode = codeFor(keys, doors)
	}
	d.start()
	handler := d.handler()
	failed := make(chan error, len(doors))
	for _, door := range doors {
		go func() { failed <- door.serve(handler) }()
	}
	leave := func() {}
	if f.hub.url != "" {
		leave, err = a.joinHub(d, f.hub)
	}
	if err == nil {
		err = a.announce(d, doors, keys)
	}
	if err == nil {
		err = a.tellWaiting(d.backend.catalog)
	}
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	a.progress("stopping: runs are suspended, the next wf serve goes on with them")
	leave()
	closed := d.close()
	for _, door := range doors {
		closed = errors.Join(closed, door.close())
	}
	return errors.Join(err, closed)
}

// newLog writes what a daemon has to tell to stderr.
func (a *app) newLog() *slog.Logger {
	level := slog.LevelInfo
	if a.quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// A door is a listener with the guard before it.
type door struct {
	listener net.Listener
	guard    *guard.Guard
	url      string // as a client writes it
	server   *http.Server
	once     sync.Once
}

// openDoors listens everywhere it is told to, or nowhere. keys is nil where nothing but sockets
// listens.
func (a *app) openDoors(ctx context.Context, s *cas.Store, f serveFlags, log *slog.Logger) (doors []*door, keys *guard.Keys, err error) {
	defer func() {
		if err != nil {
			for _, d := range doors {
				err = errors.Join(err, d.close())
			}
		}
	}()
	secure, err := tlsOf(f.cert, f.key)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range f.listen {
		socket := ""
		if text == "unix" {
			if socket, err = sockets.SocketPath(s.Dir()); err != nil {
				return doors, nil, err
			}
			if n, err := guard.Sweep(ctx, filepath.Dir(socket)); n > 0 || err != nil {
				log.Info("sockets of processes that were killed are removed", "sockets", n, "err", err)
			}
		}
		e, err := guard.ParseEndpoint(text, socket)
		if err != nil {
			return doors, nil, err
		}
		if e.TCP != "" && keys == nil {
			if keys, err = guard.OpenKeys(a.tokenFile(s, f), nil); err != nil {
				return doors, nil, err
			}
			keys.Owner = compose.User()
		}
		l, err := e.Listen(ctx, secure, keys, log)
		if err != nil {
			return doors, keys, err
		}
		doors = append(doors, newDoor(l, e, f, secure != nil, keys, log))
	}
	return doors, keys, nil
}

// tlsOf loads a certificate with its key; nil is none.
func tlsOf(cert, key string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, usagef("--tls-cert and --tls-key belong together")
	}
	return guard.LoadTLS(cert, key)
}

func newDoor(l net.Listener, e guard.Endpoint, f serveFlags, secure bool, keys *guard.Keys, log *slog.Logger) *door {
	hosts := guard.HostsOf(l, f.hosts)
	g := &guard.Guard{Hosts: hosts, Origins: f.origins, Public: server.Public, Log: log}
	d := &door{listener: l, guard: g, server: guard.Server(nil, log)}
	switch {
	case e.Socket != "":
		g.Peer = guard.Identity{Name: compose.User(), Scopes: guard.AllScopes}
		d.url = "unix:" + e.Socket
	case secure:
		g.Keys, d.url = keys, "https://"+shownHost(hosts, l, f.hosts)
	default:
		g.Keys, d.url = keys, "http://"+shownHost(hosts, l, f.hosts)
	}
	return d
}

// shownHost is the name to print: the first that the owner gave, else the address.
func shownHost(hosts []string, l net.Listener, named []string) string {
	if len(named) > 0 {
		return hosts[len(guard.HostsOf(l, nil))]
	}
	if len(hosts) == 0 { // on every interface, and nobody said by which name
		return l.Addr().String()
	}
	return hosts[0]
}

// serve answers until close, also one that came before.
func (d *door) serve(h http.Handler) error {
	d.server.Handler = d.guard.Wrap(h)
	if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve %s: %w", d.url, err)
	}
	return nil
}

// farewell is how long answers that are under way may take when a daemon stops.
const farewell = 2 * time.Second

// close lets no one in any more and waits for the answers that are under way.
func (d *door) close() error {
	var err error
	d.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		if err = d.server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			err = d.server.Close()
		}
		if shut := d.listener.Close(); !errors.Is(shut, net.ErrClosed) {
			err = errors.Join(err, shut) // the server did not have it yet
		}
	})
	return err
}

// serveDir is the directory of a store that holds what its daemon keeps.
const serveDir = "serve"

// tokenFile is where the tokens of a daemon lie: outside of the store, which agents can read.
func (a *app) tokenFile(s *cas.Store, f serveFlags) string {
	if f.tokenFile != "" {
		return f.tokenFile
	}
	store := s.Dir()
	if abs, err := filepath.Abs(store); err == nil {
		store = abs
	}
	if state := cas.StateDir(os.Getenv); state != "" {
		return filepath.Join(state, serveDir, sockets.StoreName(store)+".token")
	}
	return filepath.Join(store, serveDir, "token")
}
