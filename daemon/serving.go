package daemon

import (
	"context"
	"errors"
	"os"

	"wf/api"
	"wf/hub/client"
	"wf/protocol"
	"wf/store"
)

// A Serving is a daemon that answers at its addresses, and at a hub once it has joined one.
type Serving struct {
	*Daemon
	doors
	leave func()
}

// Serve listens everywhere the options say, starts the daemon and answers. The caller closes it.
func (d *Daemon) Serve(ctx context.Context, o ListenOptions) (*Serving, error) {
	all, err := o.listen(ctx, d.Service.Store.Beside(), d.Log)
	if err != nil {
		return nil, err
	}
	if all.keys != nil {
		d.NewCode = all.newCode
	}
	d.Start()
	all.serve(d.Handler(), d.meter)
	return &Serving{Daemon: d, doors: all, leave: func() {}}, nil
}

// Join connects it to a hub, as long as it runs.
func (s *Serving) Join(hub Remote) (err error) {
	s.leave, err = s.Daemon.Join(hub)
	return err
}

// Where says where it listens, with a one-time code for each address that wants one.
func (s *Serving) Where() (*api.Serving, error) {
	out := &api.Serving{Schema: "wf.serving/v1", PID: os.Getpid(), Name: s.Name, Version: s.Service.Version, Store: store.Shown(s.Service.Store.Name()),
		Workflows: append([]string{}, s.Service.Catalog.Dirs...)}
	var err error
	if out.Listen, err = s.addresses(); err != nil {
		return nil, err
	}
	if s.keys != nil {
		out.TokenFile = s.keys.Path()
	}
	return out, nil
}

// Close leaves the hub, suspends what runs, and accepts no more connections.
func (s *Serving) Close() error {
	s.probe.end()
	s.leave()
	return errors.Join(s.Daemon.Close(), s.doors.close())
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
