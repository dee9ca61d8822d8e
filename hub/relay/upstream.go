package relay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"wf/hub/guard"
	"wf/hub/internal/socketend"
	"wf/protocol"
)

// upstream is the WebSocket from the hub to a worker, for one client.
type upstream struct {
	socket *socket
	link   *link
	frames chan []byte // of the client
	// over are ids that the client cancelled or took elsewhere: what the worker still sends
	// for them is dropped. Guarded by socket.mu.
	over   map[string]bool
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// waiting frames of a client: more than it may have subscriptions.
const maxWaiting = 4 * protocol.MaxSubscriptions

func newUpstream(k *socket, l *link) *upstream {
	ctx, cancel := context.WithCancelCause(k.Ctx)
	return &upstream{socket: k, link: l, frames: make(chan []byte, maxWaiting), over: map[string]bool{}, ctx: ctx, cancel: cancel}
}

// pass sends a frame to the worker, as soon as it takes it.
func (u *upstream) pass(raw []byte) error {
	select {
	case u.frames <- raw:
		return nil
	case <-u.ctx.Done():
		return fmt.Errorf("worker %s: %w", u.link.id, protocol.ErrWorkerAway)
	default:
		return fmt.Errorf("worker %s has %d frames of this socket to answer: %w", u.link.id, maxWaiting, protocol.ErrRateLimited)
	}
}

// serve carries frames until the worker, the client or the hub ends, and tells the client which
// of its subscriptions ended by it.
func (u *upstream) serve() {
	defer context.AfterFunc(u.link.ctx, func() { u.cancel(protocol.ErrWorkerAway) })()
	err := u.carry()
	u.cancel(err)
	k := u.socket
	k.mu.Lock()
	delete(k.ups, u.link)
	ended := map[string]protocol.RunID{}
	for id, s := range k.subs {
		if s.up == u {
			ended[id] = s.run
			delete(k.subs, id)
		}
	}
	k.mu.Unlock()
	if k.Ctx.Err() != nil {
		return
	}
	for id, run := range ended {
		why := protocol.ErrWorkerAway
		if p, err := k.hub.Pointers.Get(k.Ctx, run); err == nil && p.Worker != u.link.id {
			why = protocol.ErrWorkerMoved
		}
		k.Send(protocol.ReplayError(id, fmt.Errorf("run %s: worker %s: %w", run, u.link.id, why)))
	}
}

// dialReplay opens a socket of the replay protocol at the worker, for a client.
func (l *link) dialReplay(ctx context.Context, by guard.Identity, c protocol.Codec) (*websocket.Conn, error) {
	head := http.Header{}
	introduce(head, by)
	dial, done := context.WithTimeout(ctx, dialTime)
	defer done()
	conn, _, err := websocket.Dial(dial, workerBase+"/v1/replay", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: l.via}, HTTPHeader: head,
		Subprotocols: []string{c.Subprotocol()}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(protocol.MaxFrame + 64<<10)
	return conn, nil
}

func (u *upstream) carry() error {
	conn, err := u.link.dialReplay(u.ctx, u.socket.by, u.socket.Codec)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	sent := make(chan error, 1)
	go func() {
		err := u.send(conn)
		u.cancel(err)
		sent <- err
	}()
	err = u.receive(conn)
	u.cancel(err)
	<-sent
	return err
}

func (u *upstream) send(conn *websocket.Conn) error {
	for {
		select {
		case <-u.ctx.Done():
			return u.ctx.Err()
		case b := <-u.frames:
			if err := conn.Write(u.ctx, socketend.Kind(u.socket.Codec), b); err != nil {
				return err
			}
		}
	}
}

func (u *upstream) receive(conn *websocket.Conn) error {
	for {
		_, b, err := conn.Read(u.ctx)
		if err != nil {
			return err
		}
		if u.concerns(b) {
			if err := u.socket.WriteOne(b); err != nil {
				return err
			}
		}
	}
}

// The frames by which a subscription may end. Their type stands at the beginning, in CBOR
// behind the id.
var endings = [][]byte{[]byte(protocol.FrameReplayComplete), []byte(protocol.FrameReplayError)}

// typeWithin is how many bytes of a frame hold its type.
const typeWithin = protocol.MaxFrameID + 48

// endsSocket are the codes by which a worker ends its whole socket. Other errors without an id
// are answers to requests without one.
var endsSocket = map[string]bool{
	protocol.ErrShuttingDown.Code: true, protocol.ErrTooSlow.Code: true, protocol.ErrTooLarge.Code: true, protocol.ErrInternal.Code: true,
}

// concerns keeps account of the subscriptions that end, and reports whether the client is to
// see the frame: what a worker says of the whole socket is not about the client's, and what it
// says under the id of a subscription that leads to another worker is not its to say.
func (u *upstream) concerns(b []byte) bool {
	k := u.socket
	k.mu.Lock()
	dropping, alone := len(u.over) > 0, len(k.ups) == 1
	k.mu.Unlock()
	start := b[:min(len(b), typeWithin)]
	if alone && !dropping && !bytes.Contains(start, endings[0]) && !bytes.Contains(start, endings[1]) {
		return true
	}
	f, err := protocol.ParseFrame(k.Codec, b)
	if err != nil {
		return alone // the client may know it; among several workers it may pose as another's
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.subs[f.ID]
	ours := ok && s.up == u
	switch {
	case u.over[f.ID] || ok && !ours:
		return false
	case f.Type == protocol.FrameReplayError && f.ID == "" && !ours && endsSocket[f.Code]:
		return false
	case ours && (f.Type == protocol.FrameReplayError || f.Type == protocol.FrameReplayComplete && !s.live):
		delete(k.subs, f.ID)
	}
	return true
}
