package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"wf/hub/guard"
	"wf/hub/internal/socketend"
	"wf/protocol"
)

// socket is the WebSocket of a client, with the subscriptions that lead to workers. Frames pass
// through it as they are, in both directions; only what is needed to find their way is read.
//
//	client ◄── socket ──┬── upstream ◄── worker a     one per worker that has a run of the client's
//	                    └── upstream ◄── worker b
type socket struct {
	hub   *Hub
	by    guard.Identity
	conn  *websocket.Conn
	codec protocol.Codec
	ctx   context.Context // ends with the socket
	fail  context.CancelCauseFunc

	mu   sync.Mutex
	ups  map[*link]*upstream
	subs map[string]subscription // by the id of the client's request
	gone socketend.Writers
}

// subscription is where a replay_request went.
type subscription struct {
	up   *upstream
	run  protocol.RunID
	live bool
}

// pingEvery is how often a client is pinged; two that are not answered end the socket.
const pingEvery = 20 * time.Second

// errClosed is a client that went away.
var errClosed = errors.New("the client closed the connection")

// replay serves GET /v1/replay.
func (h *Hub) replay(w http.ResponseWriter, r *http.Request) error {
	if !socketend.Wanted(w, r, protocol.FramesJSON, protocol.FramesCBOR) {
		return nil
	}
	if !h.begin() {
		return protocol.ErrShuttingDown
	}
	defer h.work.Done()
	id, _ := guard.Of(r.Context())
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // hub/guard knows the exact names; the library's check proves nothing
		Subprotocols:       []string{protocol.FramesCBOR, protocol.FramesJSON},
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil // answered by Accept
	}
	conn.SetReadLimit(-1) // read keeps the limit, and says so in a frame
	ctx, fail := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer context.AfterFunc(r.Context(), func() { fail(context.Cause(r.Context())) })()
	k := &socket{hub: h, by: id, conn: conn, codec: protocol.CodecOf(conn.Subprotocol()), ctx: ctx, fail: fail,
		ups: map[*link]*upstream{}, subs: map[string]subscription{}}
	if !h.enter(k) {
		conn.CloseNow()
		return nil
	}
	defer h.leave(k)
	k.gone.Go(k.ping)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		k.gone.Wait()
		k.bye(context.Cause(ctx))
	}()
	fail(k.read())
	<-ended
	return nil
}

// read takes the frames of the client until the socket ends.
func (k *socket) read() error {
	for {
		// Not with k.ctx: when that ends the library would close without a word.
		typ, r, err := k.conn.Reader(context.Background())
		if err != nil {
			return errClosed
		}
		b, err := io.ReadAll(io.LimitReader(r, protocol.MaxRequest+1))
		if err != nil {
			return errClosed
		}
		if len(b) > protocol.MaxRequest {
			return fmt.Errorf("a frame of more than %d bytes: %w", protocol.MaxRequest, protocol.ErrTooLarge)
		}
		if typ != socketend.Kind(k.codec) {
			k.answer(protocol.ReplayError("", fmt.Errorf("a %s message, this socket speaks %s: %w", typ, k.codec.Subprotocol(), protocol.ErrBadRequest)))
			continue
		}
		req, err := protocol.ParseRequest(k.codec, b)
		if err == nil {
			err = k.handle(req, b)
		}
		if err != nil {
			k.answer(protocol.ReplayError(req.ID, err))
		}
	}
}

// handle sends a frame of the client on its way.
func (k *socket) handle(r protocol.Request, raw []byte) error {
	switch r.Type {
	case protocol.FrameReplayRequest:
		return k.subscribe(r, raw)
	case protocol.FrameCancel:
		k.mu.Lock()
		s, ok := k.subs[r.ID]
		delete(k.subs, r.ID)
		if ok {
			s.up.over[r.ID] = true
		}
		k.mu.Unlock()
		if ok {
			return s.up.pass(raw)
		}
	case protocol.FramePing:
		k.answer(&protocol.Frame{Type: protocol.FramePong, ID: r.ID, N: r.N})
	case protocol.FrameBlockRequest:
		up := k.only()
		if up == nil {
			l := k.hub.serving(k.ctx, "/v1/blocks/"+r.CID.String())
			if l == nil {
				return fmt.Errorf("no worker that is connected has the block %s: %w", r.CID, protocol.ErrNotFound)
			}
			up = k.upstream(l)
		}
		return up.pass(raw)
	}
	return nil
}

// subscribe passes a replay_request on to the worker that has the run. One with an id that is in
// use takes the place of that subscription, wherever it led.
func (k *socket) subscribe(r protocol.Request, raw []byte) error {
	l, err := k.hub.owner(k.ctx, r.SessionID)
	if err != nil {
		return err
	}
	up := k.upstream(l)
	k.mu.Lock()
	old, replaced := k.subs[r.ID]
	full := !replaced && len(k.subs) >= protocol.MaxSubscriptions
	if !full {
		k.subs[r.ID] = subscription{up, r.SessionID, r.Live}
		delete(up.over, r.ID)
		if replaced && old.up != up {
			old.up.over[r.ID] = true
		}
	}
	k.mu.Unlock()
	if full {
		return fmt.Errorf("%d subscriptions are open on this socket: %w", protocol.MaxSubscriptions, protocol.ErrRateLimited)
	}
	if replaced && old.up != up {
		cancel, err := protocol.Request{Type: protocol.FrameCancel, ID: r.ID}.Encode(k.codec)
		if err == nil {
			err = old.up.pass(cancel)
		}
		if err != nil {
			return err
		}
	}
	if err := up.pass(raw); err != nil {
		k.mu.Lock()
		delete(k.subs, r.ID)
		k.mu.Unlock()
		return err
	}
	return nil
}

// only is the upstream of a socket that has one.
func (k *socket) only() *upstream {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ups) != 1 {
		return nil
	}
	for _, up := range k.ups {
		return up
	}
	return nil
}

// upstream is the way to a worker, opened if there is none yet.
func (k *socket) upstream(l *link) *upstream {
	k.mu.Lock()
	defer k.mu.Unlock()
	up := k.ups[l]
	if up == nil {
		up = newUpstream(k, l)
		k.ups[l] = up
		k.gone.Go(up.serve)
	}
	return up
}

// answer writes a frame of the hub's own.
func (k *socket) answer(f *protocol.Frame) {
	if b, err := f.Encode(k.codec); err == nil {
		k.write(b)
	}
}

// write sends a frame to the client; false when the socket ended by it.
func (k *socket) write(b []byte) bool {
	ctx, done := context.WithTimeout(context.Background(), k.hub.Patience)
	defer done()
	// A write that is cut off takes the connection with it, and with it the word why the socket
	// ends: so the one under way has a moment more.
	defer context.AfterFunc(k.ctx, func() { time.AfterFunc(socketend.LastWrite, done) })()
	err := k.conn.Write(ctx, socketend.Kind(k.codec), b)
	switch {
	case err == nil:
		return true
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		k.fail(protocol.ErrTooSlow)
	default:
		k.fail(errClosed)
	}
	return false
}

// ping finds out whether the client is still there.
func (k *socket) ping() {
	if socketend.Gone(k.ctx, k.conn, pingEvery) {
		k.fail(errClosed)
	}
}

// bye ends the socket, with a frame and a status that say why, if the client still listens.
func (k *socket) bye(why error) {
	if errors.Is(why, errClosed) || errors.Is(why, protocol.ErrTooSlow) {
		k.conn.CloseNow() // a write that was cut off ends the connection
		return
	}
	socketend.Bye(k.conn, k.codec, why)
}
