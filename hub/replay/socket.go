package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"wf/hub/internal/socketend"
	"wf/protocol"
)

// socket is one WebSocket with its subscriptions.
type socket struct {
	s     *Server
	conn  *websocket.Conn
	codec protocol.Codec
	ctx   context.Context // ends with the socket
	fail  context.CancelCauseFunc

	mu   sync.Mutex
	subs map[string]*subscription
	gone socketend.Writers
}

// subscription is one replay_request that is under way.
type subscription struct {
	stop context.CancelCauseFunc
	done chan struct{}
}

// errCancelled ends a subscription without a word.
var errCancelled = errors.New("cancelled by the client")

// serveSocket accepts a WebSocket. The library compares Origin with Host, which DNS rebinding
// makes equal: that check proves nothing, and is left to hub/guard, which knows the exact names.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !socketend.Wanted(w, r, protocol.FramesJSON, protocol.FramesCBOR) {
		return
	}
	leave, err := s.enter()
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // see above
		Subprotocols:       []string{protocol.FramesCBOR, protocol.FramesJSON},
		CompressionMode:    websocket.CompressionDisabled, // it costs more than the wire, and opens bombs
	})
	if err != nil {
		return // answered by Accept
	}
	conn.SetReadLimit(-1) // read keeps the limit, and says so in a frame
	ctx, fail := context.WithCancelCause(s.ctx)
	// The guard may end what it let in: then the context of the request ends.
	defer context.AfterFunc(r.Context(), func() { fail(context.Cause(r.Context())) })()
	k := &socket{s: s, conn: conn, codec: protocol.CodecOf(conn.Subprotocol()), ctx: ctx, fail: fail, subs: map[string]*subscription{}}
	k.gone.Go(k.ping)
	ended := make(chan struct{})
	go func() { // the cause of ctx says why the socket ends; then the reader ends too
		defer close(ended)
		<-ctx.Done()
		k.gone.Wait()
		k.bye(context.Cause(ctx))
	}()
	fail(k.read())
	<-ended
}

// errClosed is a client that went away.
var errClosed = errors.New("the client closed the connection")

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
			k.send(protocol.ReplayError("", fmt.Errorf("a %s message, this socket speaks %s: %w", typ, k.codec.Subprotocol(), protocol.ErrBadRequest)))
			continue
		}
		req, err := protocol.ParseRequest(k.codec, b)
		if err != nil {
			k.send(protocol.ReplayError(req.ID, err))
			continue
		}
		k.handle(req)
	}
}

func (k *socket) handle(r protocol.Request) {
	switch r.Type {
	case protocol.FrameReplayRequest:
		k.subscribe(r)
	case protocol.FrameCancel:
		k.cancel(r.ID)
	case protocol.FramePing:
		k.send(&protocol.Frame{Type: protocol.FramePong, ID: r.ID, N: r.N})
	case protocol.FrameBlockRequest:
		k.block(r)
	}
}

// subscribe begins a subscription, in the place of one with the same id.
func (k *socket) subscribe(r protocol.Request) {
	k.cancel(r.ID)
	ctx, stop := context.WithCancelCause(k.ctx)
	sub := &subscription{stop: stop, done: make(chan struct{})}
	k.mu.Lock()
	open := len(k.subs)
	full := open >= orDefault(k.s.Subscriptions, protocol.MaxSubscriptions)
	if !full {
		k.subs[r.ID] = sub
	}
	k.mu.Unlock()
	if full {
		stop(nil)
		k.send(protocol.ReplayError(r.ID, fmt.Errorf("%d subscriptions are open on this socket: %w", open, protocol.ErrRateLimited)))
		return
	}
	follow := func() {
		defer close(sub.done)
		err := k.s.Follow(ctx, r, &socketSink{k: k, packer: packer{s: k.s, run: r.SessionID, codec: k.codec, id: r.ID, batch: r.Batch}})
		if err != nil && ctx.Err() == nil {
			k.send(errorFrame(r.ID, err))
		}
		stop(nil)
		k.mu.Lock()
		if k.subs[r.ID] == sub {
			delete(k.subs, r.ID)
		}
		k.mu.Unlock()
	}
	if !k.gone.Go(follow) {
		stop(nil)
		close(sub.done) // the socket is ending
	}
}

// cancel ends a subscription, if there is one of that id, and waits until its last frame is out.
func (k *socket) cancel(id string) {
	k.mu.Lock()
	sub := k.subs[id]
	delete(k.subs, id)
	k.mu.Unlock()
	if sub != nil {
		sub.stop(errCancelled)
		<-sub.done
	}
}

// block answers a block_request, in parts: a block may be as long as a frame.
func (k *socket) block(r protocol.Request) {
	data, err := k.s.Feed.Block(k.ctx, r.CID)
	if err != nil {
		k.send(protocol.ReplayError(r.ID, err))
		return
	}
	for from := 0; from == 0 || from < len(data); from += protocol.BlockPart {
		part := data[from:min(len(data), from+protocol.BlockPart)]
		if !k.send(&protocol.Frame{Type: protocol.FrameBlock, ID: r.ID, CID: r.CID, Offset: int64(from), Size: int64(len(data)), Bytes: part}) {
			return
		}
	}
}

// send writes one frame; false when the socket ended by it.
func (k *socket) send(f *protocol.Frame) bool {
	b, err := f.Encode(k.codec)
	if err == nil {
		err = k.write(func(send func([]byte) error) error { return send(b) })
	}
	return err == nil
}

// write sends frames, each within the write deadline: what the server takes to read and to encode
// is not the client's slowness. There is some time behind the deadline, so that a client that still
// reads gets the error too_slow; one that does not is cut off.
func (k *socket) write(frames func(send func([]byte) error) error) error {
	limit := orDefault(k.s.WriteTimeout, 10*time.Second)
	ctx, done := context.WithCancel(context.Background())
	defer done()
	cutOff := time.AfterFunc(time.Hour, done)
	cutOff.Stop()
	// A write that is cut off takes the connection with it, and with it the word why the socket
	// ends: so the one under way has a moment more, and no client holds up a server that stops.
	defer context.AfterFunc(k.ctx, func() { time.AfterFunc(socketend.LastWrite, done) })()
	return frames(func(b []byte) error {
		begun := time.Now()
		cutOff.Reset(limit + limit/5)
		err := k.conn.Write(ctx, socketend.Kind(k.codec), b)
		cutOff.Stop()
		switch {
		case err != nil && ctx.Err() == nil:
			k.fail(errClosed)
		case err != nil || time.Since(begun) > limit:
			err = protocol.ErrTooSlow
			k.fail(err)
		}
		return err
	})
}

// ping finds out whether the client is still there: two pings in a row without an answer end
// the socket. Browsers answer by themselves.
func (k *socket) ping() {
	if socketend.Gone(k.ctx, k.conn, orDefault(k.s.PingEvery, 20*time.Second)) {
		k.fail(errClosed)
	}
}

// bye ends the socket, with a frame and a status that say why.
func (k *socket) bye(why error) {
	if errors.Is(why, errClosed) {
		k.conn.CloseNow()
		return
	}
	socketend.Bye(k.conn, k.codec, why)
}

// socketSink writes what a cursor reads to its socket.
type socketSink struct {
	packer
	k *socket
}

func (s *socketSink) Events(ctx context.Context, batch []protocol.Entry, live bool) error {
	return s.k.write(func(send func([]byte) error) error { return s.pack(ctx, batch, live, send) })
}

func (s *socketSink) Frame(_ context.Context, f *protocol.Frame) error {
	f.ID = s.id
	b, err := f.Encode(s.codec)
	if err != nil {
		return err
	}
	return s.k.write(func(send func([]byte) error) error { return send(b) })
}
