package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"wf/hub/internal/socketend"
	"wf/protocol"
)

// socket is one WebSocket with its subscriptions.
type socket struct {
	*socketend.Socket
	s *Server

	mu   sync.Mutex
	subs map[string]*subscription
}

// subscription is one replay_request or list_request that is under way.
type subscription struct {
	stop context.CancelCauseFunc
	done chan struct{}
}

// errCancelled ends a subscription without a word.
var errCancelled = errors.New("cancelled by the client")

// serveSocket serves a WebSocket until it ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !socketend.Wanted(w, r, protocol.FramesJSON, protocol.FramesCBOR) {
		return
	}
	leave, err := s.enter(r)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	end := socketend.Accept(s.ctx, w, r, cmp.Or(s.WriteTimeout, 10*time.Second))
	if end == nil {
		return
	}
	k := &socket{Socket: end, s: s, subs: map[string]*subscription{}}
	k.Serve(r, cmp.Or(s.PingEvery, 20*time.Second), k.handle)
}

// handle takes a request of the client; its error is answered.
func (k *socket) handle(r protocol.Request, _ []byte) error {
	switch r.Type {
	case protocol.FrameReplayRequest:
		return k.subscribe(r.ID, func(ctx context.Context) error {
			return k.s.Follow(ctx, r, &socketSink{k: k, packer: packer{s: k.s, run: r.SessionID, codec: k.Codec, id: r.ID, batch: r.Batch}})
		})
	case protocol.FrameListRequest:
		if k.s.Lists == nil {
			return fmt.Errorf("this server does not report changes of lists: %w", protocol.ErrBadRequest)
		}
		return k.subscribe(r.ID, func(ctx context.Context) error { return k.s.Lists.Serve(ctx, r, k.SendFrame) })
	case protocol.FrameCancel:
		k.cancel(r.ID)
	case protocol.FramePing:
		k.Send(&protocol.Frame{Type: protocol.FramePong, ID: r.ID, N: r.N})
	case protocol.FrameBlockRequest:
		return k.block(r)
	}
	return nil
}

// subscribe begins a subscription, in the place of one with the same id; serve goes on until its context ends.
func (k *socket) subscribe(id string, serve func(context.Context) error) error {
	k.cancel(id)
	ctx, stop := context.WithCancelCause(k.Ctx)
	sub := &subscription{stop: stop, done: make(chan struct{})}
	k.mu.Lock()
	open := len(k.subs)
	full := open >= cmp.Or(k.s.Subscriptions, protocol.MaxSubscriptions)
	if !full {
		k.subs[id] = sub
	}
	k.mu.Unlock()
	if full {
		stop(nil)
		return fmt.Errorf("%d subscriptions are open on this socket: %w", open, protocol.ErrRateLimited)
	}
	follow := func() {
		defer close(sub.done)
		err := serve(ctx)
		if err != nil && ctx.Err() == nil {
			k.Send(errorFrame(id, err))
		}
		stop(nil)
		k.mu.Lock()
		if k.subs[id] == sub {
			delete(k.subs, id)
		}
		k.mu.Unlock()
	}
	if !k.Go(follow) {
		stop(nil)
		close(sub.done) // the socket is ending
	}
	return nil
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
func (k *socket) block(r protocol.Request) error {
	data, err := k.s.Feed.Block(k.Ctx, r.CID)
	if err != nil {
		return err
	}
	for from := 0; from == 0 || from < len(data); from += protocol.BlockPart {
		part := data[from:min(len(data), from+protocol.BlockPart)]
		if !k.Send(&protocol.Frame{Type: protocol.FrameBlock, ID: r.ID, CID: r.CID, Offset: int64(from), Size: int64(len(data)), Bytes: part}) {
			return nil // the socket is ending
		}
	}
	return nil
}

// socketSink writes what a cursor reads to its socket.
type socketSink struct {
	packer
	k *socket
}

func (s *socketSink) Events(ctx context.Context, batch []protocol.Entry, live bool) error {
	return s.k.Write(func(send func([]byte) error) error { return s.pack(ctx, batch, live, send) })
}

func (s *socketSink) Frame(_ context.Context, f *protocol.Frame) error {
	f.ID = s.id
	return s.k.SendFrame(f)
}
