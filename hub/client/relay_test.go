package client_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay is a TCP connection between client and server that is cut after so many bytes, in the
// middle of whatever is on the way.
type relay struct {
	l    net.Listener
	to   string
	cuts func() int64 // bytes that the next connection lets through to the client

	mu      sync.Mutex
	open    map[net.Conn]bool
	stopped bool
	idle    sync.WaitGroup
}

func newRelay(t testing.TB, to string, cuts func() int64) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l, to: to, cuts: cuts, open: map[net.Conn]bool{}}
	r.idle.Go(r.accept)
	t.Cleanup(r.stop)
	return r
}

// stop ends the relay, with a connection that it is just about to pass on too.
func (r *relay) stop() {
	r.l.Close()
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cutAll()
	r.idle.Wait()
}

func (r *relay) accept() {
	for {
		in, err := r.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil { // the server is down
			in.Close()
			continue
		}
		r.mu.Lock()
		r.open[in], r.open[out] = true, true
		limit := r.cuts()
		if r.stopped {
			in.Close()
			out.Close()
		}
		r.mu.Unlock()
		end := sync.OnceFunc(func() {
			in.Close()
			out.Close()
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.open, in)
			delete(r.open, out)
		})
		r.idle.Go(func() { io.Copy(out, in); end() })
		r.idle.Go(func() { io.CopyN(in, out, limit); end() })
	}
}

func (r *relay) cutAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
}
