package guard

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Connections that the TCP listeners of a server have open at once, where the limit of open files allows them: half of
// those files are for the store and the runs, else there are fewer, in the same proportion.
const (
	// MostStrangers are outside: no request on them has shown a token or a valid signature yet.
	MostStrangers = 1024
	// MostInside have shown one.
	MostInside = 1280
)

// StrangerIdle is how long a connection stays on which nothing was shown, between two requests.
const StrangerIdle = 10 * time.Second

// A Door is what the TCP listeners of one server share: the places of those outside, and of those inside.
//
//	accepted ─► outside, by peer ─► a token or signature holds ─► inside, by token or webhook
//
// It takes every connection at once. Outside a new one takes the place of the oldest of the peer that has the most; so no
// stranger keeps another one out, and none of them anybody inside.
type Door struct {
	proxies   Proxies
	log       *slog.Logger
	strangers Places
	within    Places
	known     Known

	mu   sync.Mutex
	cuts int       // connections that gave way since the last line of the log
	said time.Time // when that was
}

// NewDoor is a door that takes the word of some proxies. log may be nil.
func NewDoor(proxies Proxies, log *slog.Logger) *Door {
	var files syscall.Rlimit
	most := MostStrangers + MostInside
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		most = placesFor(uint64(files.Cur))
	}
	outside := most * MostStrangers / (MostStrangers + MostInside)
	inside := most - outside
	return &Door{proxies: proxies, log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		strangers: Places{What: "connections without a token", Most: outside, Each: outside / 2, Kept: outside / 4, Spared: outside / 4},
		within:    Places{What: "connections", Most: inside, Each: inside / 5, Favoured: inside * 3 / 4, Shared: inside * 4 / 5, Kept: inside / 10},
	}
}

// placesFor is how many connections there may be where a process may open so many files.
func placesFor(files uint64) int {
	return int(max(64, min(files/2, MostStrangers+MostInside)))
}

// listen gives each connection of a listener its place.
func (d *Door) listen(l net.Listener) net.Listener { return &doorListener{l, d} }

type doorListener struct {
	net.Listener
	door *Door
}

// Accept gives the next connection; it waits for nothing else.
func (l *doorListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, door: l.door}
	address := addressOf(inner.RemoteAddr().String())
	var peer Peer // none of a proxy: who is behind it, its first request says
	if !l.door.proxies.has(address) {
		peer = PeerAt(address)
	}
	c.outside(peer)
	return c, nil
}

// conn is a connection with its place.
type conn struct {
	net.Conn
	door *Door

	mu      sync.Mutex
	place   *Place
	holder  Holder
	inside  bool
	between bool // two requests
	closed  bool

	gone atomic.Bool // another one has its place
}

// outside makes a connection that of a stranger.
func (c *conn) outside(peer Peer) {
	h := Holder{Name: string(peer), Favoured: c.door.known.Has(peer, time.Now())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.place != nil && !c.inside && c.holder == h {
		return
	}
	c.leave()
	// Every place outside may be taken for another one, so that there is always one.
	c.place, _ = c.door.strangers.Take(h, false, c.cut)
	c.holder, c.inside = h, false
}

// enter makes a connection that of a holder which has shown who it is. An error wraps protocol.ErrRateLimited: it
// stays what it was.
func (c *conn) enter(h Holder) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.inside && c.holder == h {
		return nil
	}
	place, err := c.door.within.Take(h, true, c.cut)
	if err != nil {
		return err
	}
	c.leave()
	c.place, c.holder, c.inside = place, h, true
	return nil
}

// leave gives the place back; the caller holds mu.
func (c *conn) leave() {
	if c.place != nil {
		c.place.Leave()
		c.place = nil
	}
}

// cut ends a connection whose place another one has: what reads it gets an error, and closes it.
func (c *conn) cut() {
	c.gone.Store(true)
	_ = c.Conn.Close() // its descriptor is free also where that fails
}

// Close gives the place back.
func (c *conn) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.leave()
	c.mu.Unlock()
	if !again && c.gone.Load() {
		c.door.gaveWay(c.RemoteAddr())
		return nil
	}
	return c.Conn.Close()
}

// SetReadDeadline keeps that of a stranger short between two requests.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	short := c.between && !c.inside && !t.IsZero()
	c.mu.Unlock()
	if most := time.Now().Add(StrangerIdle); short && t.After(most) {
		t = most
	}
	return c.Conn.SetReadDeadline(t)
}

// is notes what a server says of a connection: one of those inside may be taken for another between two requests.
func (c *conn) is(state http.ConnState) {
	if state != http.StateActive && state != http.StateIdle {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.between = state == http.StateIdle
	if c.inside && c.place != nil {
		c.place.Busy(!c.between)
	}
}

type connKey struct{}

// placed is the connection of a door; nil for one of another kind.
func placed(c net.Conn) *conn {
	if s, ok := c.(*tls.Conn); ok {
		c = s.NetConn()
	}
	x, _ := c.(*conn)
	return x
}

// connOf is the connection of a request; nil for one that did not come by a door.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// Admit notes that a request has shown who it is from: its connection is one of those inside, and its peer is known. An
// error wraps protocol.ErrRateLimited and says which bound was met: the request is to be refused.
func Admit(r *http.Request, h Holder) error {
	o := sourceOf(r)
	if o.door != nil {
		o.door.known.Note(o.peer, time.Now())
	}
	if c := connOf(r.Context()); c != nil {
		return c.enter(h)
	}
	return nil
}

// cutsEvery is how often the log is told of connections that gave way.
const cutsEvery = time.Minute

// gaveWay counts a connection whose place another one has.
func (d *Door) gaveWay(last net.Addr) {
	now := time.Now()
	d.mu.Lock()
	d.cuts++
	n := d.cuts
	quiet := now.Sub(d.said) < cutsEvery
	if !quiet {
		d.said, d.cuts = now, 0
	}
	d.mu.Unlock()
	if !quiet {
		d.log.Warn("connections were closed to make room for others", "connections", n, "last", last.String())
	}
}
