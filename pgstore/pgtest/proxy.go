package pgtest

import (
	"bytes"
	"errors"
	"net"
	"sync"
)

// Proxy lies between a client and a server. What one of them says can be held back, and connections can be cut.
type Proxy struct {
	l    net.Listener
	to   string // the socket of the server
	idle sync.WaitGroup

	mu    sync.Mutex
	pairs map[*pair]bool
	hold  hold
	woken *sync.Cond
	held  int // what is held back, of so many connections and directions
	over  bool
}

type hold struct{ answers, requests bool }

// pair is a connection of a client, and the one to the server that belongs to it.
type pair struct {
	client, server net.Conn
	cut            bool // the client is gone; what it said may still be let through
}

// NewProxy listens on loopback for clients of a server.
func NewProxy(s *Server) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{l: l, to: s.Socket(), pairs: map[*pair]bool{}}
	p.woken = sync.NewCond(&p.mu)
	p.idle.Go(p.accept)
	return p, nil
}

// Addr is the host and the port on which it listens.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// DSN is the address of a database through the proxy.
func (p *Proxy) DSN(database string) string {
	return "postgres://wf@" + p.Addr() + "/" + database + "?sslmode=disable"
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.to)
		if err != nil {
			_ = client.Close() // the server is down, and so is this
			continue
		}
		x := &pair{client: client, server: server}
		p.mu.Lock()
		over := p.over
		p.pairs[x] = true
		p.mu.Unlock()
		if over {
			p.end(x)
			return
		}
		p.idle.Go(func() { p.carry(x, client, server, func(h hold) bool { return h.requests }, true) })
		p.idle.Go(func() { p.carry(x, server, client, func(h hold) bool { return h.answers }, false) })
	}
}

// carry passes on what from says, and keeps it while it is to be held.
func (p *Proxy) carry(x *pair, from, to net.Conn, held func(hold) bool, request bool) {
	var kept bytes.Buffer
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		kept.Write(buf[:n])
		p.mu.Lock()
		if kept.Len() > 0 {
			p.held++
			p.woken.Broadcast()
			for held(p.hold) && !p.over && !(x.cut && !request) {
				p.woken.Wait()
			}
			p.held--
		}
		p.mu.Unlock()
		if kept.Len() > 0 {
			if _, bad := to.Write(kept.Bytes()); bad != nil {
				err = errors.Join(err, bad)
			}
			kept.Reset()
		}
		if err != nil {
			p.end(x)
			return
		}
	}
}

func (p *Proxy) end(x *pair) {
	p.mu.Lock()
	delete(p.pairs, x)
	p.mu.Unlock()
	_ = x.client.Close() // either may be closed already
	_ = x.server.Close()
}

// HoldAnswers keeps what the server says from its clients.
func (p *Proxy) HoldAnswers() { p.set(hold{answers: true}) }

// HoldRequests keeps what clients say from the server.
func (p *Proxy) HoldRequests() { p.set(hold{requests: true}) }

// Release lets everything through that was held, also of clients that were cut.
func (p *Proxy) Release() { p.set(hold{}) }

func (p *Proxy) set(h hold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = h
	p.woken.Broadcast()
}

// AwaitHeld returns when something is held back.
func (p *Proxy) AwaitHeld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held == 0 && !p.over {
		p.woken.Wait()
	}
}

// Cut ends the connections of all clients. What they said and the server has not heard stays, until Release.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.pairs {
		x.cut = true
		_ = x.client.Close() // its reader ends with it
		if !p.hold.requests {
			_ = x.server.Close()
		}
	}
	p.woken.Broadcast()
}

// Close ends the proxy.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.over = true
	for x := range p.pairs {
		_ = x.client.Close()
		_ = x.server.Close()
	}
	p.woken.Broadcast()
	p.mu.Unlock()
	err := p.l.Close()
	p.idle.Wait()
	return err
}
