package daemon

import (
	"context"
	"errors"
	"net/http"
	"os"

	"wf/api"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/protocol"
)

// A Serving is a daemon that answers at its addresses, and at a hub once it has joined one.
type Serving struct {
	*Daemon

	listeners []*Listener
	keys      *guard.Keys // nil where only sockets listen
	failed    <-chan error
	leave     func()
}

// Serve listens everywhere the options say, starts the daemon and answers. The caller closes it.
func (d *Daemon) Serve(ctx context.Context, o ListenOptions) (*Serving, error) {
	listeners, keys, err := Listen(ctx, d.Service.Store.Dir(), o, d.Log)
	if err != nil {
		return nil, err
	}
	if keys != nil {
		d.NewCode = CodeFor(keys, listeners)
	}
	d.Start()
	return &Serving{Daemon: d, listeners: listeners, keys: keys, failed: serveAll(listeners, d.Handler()), leave: func() {}}, nil
}

// Join connects it to a hub, as long as it runs.
func (s *Serving) Join(hub Remote) (err error) {
	s.leave, err = s.Daemon.Join(hub)
	return err
}

// Where says where it listens, with a one-time code for each address that wants one.
func (s *Serving) Where() (*api.Serving, error) {
	out := &api.Serving{Schema: "wf.serving/v1", PID: os.Getpid(), Name: s.Name, Version: s.Service.Version, Store: s.Service.Store.Dir(),
		Workflows: append([]string{}, s.Service.Catalog.Dirs...)}
	var err error
	if out.Listen, err = addresses(s.keys, s.listeners); err != nil {
		return nil, err
	}
	if s.keys != nil {
		out.TokenFile = s.keys.Path()
	}
	return out, nil
}

// Wait returns when ctx ends or an address fails, with the reason.
func (s *Serving) Wait(ctx context.Context) error { return failure(ctx, s.failed) }

// Close leaves the hub, suspends what runs, and accepts no more connections.
func (s *Serving) Close() error {
	s.leave()
	return errors.Join(s.Daemon.Close(), closeAll(s.listeners))
}

// serveAll answers at all listeners until they are closed; failed has the error of each that ended.
func serveAll(listeners []*Listener, h http.Handler) (failed <-chan error) {
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- l.Serve(h) }()
	}
	return ended
}

// failure is the first error of failed, or that of ctx.
func failure(ctx context.Context, failed <-chan error) error {
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func closeAll(listeners []*Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// ErrNone says that no daemon of a store could be asked.
var ErrNone = &protocol.Error{Code: "no_daemon", Message: "no wf serve answers", Hint: "wf serve starts one"}

// Dial is a client of the daemon of a store, by its socket; whether one listens there shows with the first
// request. The caller closes it.
func Dial(store string) (server *client.API, socket string, err error) {
	if socket, err = SocketPath(store); err != nil {
		return nil, socket, err
	}
	server, err = client.New("unix:"+socket, client.Options{})
	return server, socket, err
}
