package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"wf/cas"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/service/compose"
)

// pipeListener hands connections from a client in this process to a server in it.
type pipeListener struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), gone: make(chan struct{})}
}

// Accept waits for the next connection.
func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

// Close accepts no more connections.
func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.gone) })
	return nil
}

// Addr is a name for logs.
func (p *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// client makes requests to the server at the other end, whatever host they name.
func (p *pipeListener) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case p.conns <- theirs:
			return ours, nil
		case <-p.gone:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}}
}

// Private runs a daemon that listens to nothing but the screen of this process, and drives
// nothing but what that asks for, until f returns.
//
//	screen ─► client ─► pipe ─► hub/server ─► service ─► supervisor ─► engine ─► store
//	   ▲                         └──► replay ◄── broadcast ◄──┘
func Private(u *compose.Setup, s *cas.Store, dir string, f func(*Daemon, *client.API) error) error {
	d, err := New(u, s, Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Alone: true})
	if err != nil {
		return err
	}
	pipe := newPipeListener()
	api, err := client.New("", client.Options{HTTP: pipe.client()})
	if err != nil {
		return err
	}
	d.Start()
	server := guard.Server(guard.As(guard.Identity{Name: compose.User(), Scopes: guard.AllScopes}, d.Handler()), d.Log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(pipe) }()
	err = f(d, api)
	api.Close()
	err = errors.Join(err, d.Close(), server.Close())
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
