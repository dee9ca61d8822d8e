// Package pipes has connections within a process for tests of clients that stall: they hold nothing back, so a write ends when it was read.
package pipes

import (
	"context"
	"net"
	"sync"
)

// A Listener accepts the connections that Dial makes.
type Listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// New is a listener, within a synctest bubble one of that bubble.
func New() *Listener { return &Listener{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is none.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{} }

// Dial makes a connection, whatever the address; see http.Transport.DialContext.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
