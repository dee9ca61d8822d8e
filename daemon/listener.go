package daemon

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
	"slices"
	"sync"
	"time"
	"wf/cas"
	"wf/hub/guard"
	"wf/hub/server"
	"wf/protocol"
	"wf/service/compose"
)

// ListenOptions say where a server listens, and what it lets in.
type ListenOptions struct {
	Addresses []string // unix, unix:PATH, PORT, or HOST:PORT
	TokenFile string   // "" is one in the state of the user
	Cert, Key string   // files, for TLS
	Hosts     []string // further names that the server goes by
	Origins   []string // further origins that may send requests
	Proxies   []string // addresses and blocks of proxies whose word on where requests come from is taken
}

// A Listener is an address with the guard before it.
type Listener struct {
	listener net.Listener
	Guard    *guard.Guard
	URL      string // as a client writes it
	server   *http.Server
	once     sync.Once
}

// listen listens at all addresses of the daemon of a store, or at none.
func (o ListenOptions) listen(ctx context.Context, store string, log *slog.Logger) (d doors, err error) {
	secure, err := o.tls()
	if err != nil {
		return d, err
	}
	socket := ""
	if slices.Contains(o.Addresses, "unix") {
		if socket, err = SocketPath(store); err != nil {
			return d, err
		}
		n, err := guard.Sweep(ctx, filepath.Dir(socket))
		if n > 0 {
			log.Info("sockets of processes that were killed are removed", "sockets", n)
		}
		if err != nil {
			log.Warn("sockets of processes that were killed are left", "err", err)
		}
	}
	at, err := endpoints(o.Addresses, socket)
	if err != nil {
		return d, err
	}
	var keys *guard.Keys
	if slices.ContainsFunc(at, func(e guard.Endpoint) bool { return e.TCP != "" }) {
		if keys, err = openKeys(tokenFile(store, o)); err != nil {
			return d, err
		}
	}
	return o.open(ctx, at, secure, keys, log)
}

// tls loads the certificate with its key; nil is none.
func (o ListenOptions) tls() (*tls.Config, error) {
	switch {
	case o.Cert == "" && o.Key == "":
		return nil, nil
	case o.Cert == "" || o.Key == "":
		return nil, protocol.ErrUsage.With("", "--tls-cert and --tls-key belong together")
	}
	return guard.LoadTLS(o.Cert, o.Key)
}

// NewListener is an endpoint that listens already, with its guard; secure says that it speaks TLS.
func NewListener(l net.Listener, e guard.Endpoint, o ListenOptions, secure bool, keys *guard.Keys, log *slog.Logger) *Listener {
	hosts := guard.HostsOf(l, o.Hosts)
	g := &guard.Guard{Hosts: hosts, Origins: o.Origins, Public: server.Public, MaxBody: server.MaxBody, Uploads: server.Upload, Signed: server.Signed, Log: log}
	d := &Listener{listener: l, Guard: g, server: guard.Server(nil, log)}
	switch {
	case e.Socket != "":
		g.Peer = guard.Identity{Name: compose.User(), Scopes: guard.AllScopes}
		d.URL = "unix:" + e.Socket
	case secure:
		g.Keys, d.URL = keys, "https://"+shownHost(hosts, l, o.Hosts)
	default:
		g.Keys, d.URL = keys, "http://"+shownHost(hosts, l, o.Hosts)
	}
	return d
}

// shownHost is the name to print: the first that the owner gave, else the address.
func shownHost(hosts []string, l net.Listener, named []string) string {
	if len(named) > 0 {
		return hosts[len(guard.HostsOf(l, nil))]
	}
	if len(hosts) == 0 { // on every interface, and no name was given
		return l.Addr().String()
	}
	return hosts[0]
}

// Serve answers until close, also one that came before.
func (d *Listener) Serve(h http.Handler) error {
	d.server.Handler = d.Guard.Wrap(h)
	if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve %s: %w", d.URL, err)
	}
	return nil
}

// farewell is how long answers that are under way may take when a daemon stops.
const farewell = 2 * time.Second

// Close accepts no more connections and waits for the answers that are under way.
func (d *Listener) Close() error {
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

// tokenFile is where the tokens of a daemon lie: outside of the store, which agents can read.
func tokenFile(store string, o ListenOptions) string {
	if o.TokenFile != "" {
		return o.TokenFile
	}
	if abs, err := filepath.Abs(store); err == nil {
		store = abs
	}
	if state := cas.StateDir(os.Getenv); state != "" {
		return filepath.Join(state, Dir, StoreName(store)+".token")
	}
	return filepath.Join(store, Dir, "token")
}
