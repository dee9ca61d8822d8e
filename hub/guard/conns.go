package guard

import (
	"net"
	"sync"
)

// MaxConns is how many connections the listener of a unix socket has open at once. Beyond that the next ones wait: they
// are all of the own user, whose programs must not take the files that the store needs.
const MaxConns = 512

// limited takes connections while there are fewer than MaxConns.
type limited struct {
	net.Listener
	free chan struct{} // holds one for each open connection
	done chan struct{} // closed with the listener
	end  func()        // closes done
}

func limit(l net.Listener, most int) net.Listener {
	done := make(chan struct{})
	return &limited{l, make(chan struct{}, most), done, sync.OnceFunc(func() { close(done) })}
}

// Accept waits for a free place, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.free })}, nil
}

// Close ends the listener; connections stay.
func (l *limited) Close() error {
	l.end()
	return l.Listener.Close()
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
