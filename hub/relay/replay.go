package relay

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

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
	*socketend.Socket
	hub *Hub
	by  guard.Identity

	mu   sync.Mutex
	ups  map[*link]*upstream
	subs map[string]subscription // by the id of the client's request
}

// subscription is where a replay_request went, or a list_request, which the hub serves itself.
type subscription struct {
	up   *upstream // nil of a list_request
	run  protocol.RunID
	live bool
	told *telling // of a list_request, else nil
}

// telling is a list_request that is served.
type telling struct {
	stop context.CancelFunc
	done chan struct{} // closed when its last frame is out
}

// pingEvery is how often a client is pinged; two that are not answered end the socket.
const pingEvery = 20 * time.Second

// replay serves GET /v1/replay.
func (h *Hub) replay(w http.ResponseWriter, r *http.Request) error {
	if !socketend.Wanted(w, r, protocol.FramesJSON, protocol.FramesCBOR) {
		return nil
	}
	if !h.begin() {
		return protocol.ErrShuttingDown
	}
	defer h.work.Done()
	place, err := h.places.Take(guard.HolderOf(r.Context()), true, nil)
	if err != nil {
		w.Header().Set("Retry-After", guard.RetryAfter)
		return err
	}
	defer place.Leave()
	id, _ := guard.Of(r.Context())
	end := socketend.Accept(context.WithoutCancel(r.Context()), w, r, h.Patience)
	if end == nil {
		return nil // answered by Accept
	}
	k := &socket{Socket: end, hub: h, by: id, ups: map[*link]*upstream{}, subs: map[string]subscription{}}
	if !h.enter(k) {
		k.Conn.CloseNow()
		return nil
	}
	defer h.leave(k)
	k.Serve(r, pingEvery, k.handle)
	return nil
}

// handle sends a frame of the client on its way.
func (k *socket) handle(r protocol.Request, raw []byte) error {
	switch r.Type {
	case protocol.FrameReplayRequest:
		return k.subscribe(r, raw)
	case protocol.FrameListRequest:
		return k.tell(r)
	case protocol.FrameCancel:
		return k.cancel(r.ID)
	case protocol.FramePing:
		k.Send(&protocol.Frame{Type: protocol.FramePong, ID: r.ID, N: r.N})
	case protocol.FrameBlockRequest:
		up := k.only()
		if up == nil {
			l := k.hub.serving(k.Ctx, "/v1/blocks/"+r.CID.String())
			if l == nil {
				return fmt.Errorf("no worker that is connected has the block %s: %w", r.CID, protocol.ErrNotFound)
			}
			up = k.upstream(l)
		}
		return up.pass(raw)
	}
	return nil
}

// cancel ends a subscription, wherever it led. It waits until the last frame of a list_request is out: else a client that takes no frame
// could have the hub begin any number of them.
func (k *socket) cancel(id string) error {
	k.mu.Lock()
	s, ok := k.subs[id]
	delete(k.subs, id)
	if ok && s.up != nil {
		s.up.over[id] = true
	}
	k.mu.Unlock()
	switch {
	case !ok:
		return nil
	case s.told != nil:
		s.told.stop()
		<-s.told.done
		return nil
	}
	b, err := protocol.Request{Type: protocol.FrameCancel, ID: id}.Encode(k.Codec)
	if err != nil {
		return err
	}
	return s.up.pass(b)
}

// full is an error where a socket has as many subscriptions as it may have; the caller holds mu.
func (k *socket) full() error {
	if len(k.subs) < protocol.MaxSubscriptions {
		return nil
	}
	return fmt.Errorf("%d subscriptions are open on this socket: %w", protocol.MaxSubscriptions, protocol.ErrRateLimited)
}

// tell serves a list_request, in the place of a subscription with the same id.
func (k *socket) tell(r protocol.Request) error {
	if err := k.cancel(r.ID); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(k.Ctx)
	t := &telling{stop, make(chan struct{})}
	k.mu.Lock()
	err := k.full()
	if err == nil {
		k.subs[r.ID] = subscription{told: t}
	}
	k.mu.Unlock()
	if err != nil {
		stop()
		return err
	}
	serve := func() {
		defer close(t.done)
		defer stop()
		if err := k.hub.lists.Serve(ctx, r, k.SendFrame); ctx.Err() == nil {
			k.Send(protocol.ReplayError(r.ID, err))
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.subs[r.ID].told == t {
			delete(k.subs, r.ID)
		}
	}
	if !k.Go(serve) { // the socket is ending
		stop()
		close(t.done)
	}
	return nil
}

// subscribe passes a replay_request on to the worker that has the run. One with an id that is in
// use takes the place of that subscription, wherever it led.
func (k *socket) subscribe(r protocol.Request, raw []byte) error {
	l, err := k.hub.owner(k.Ctx, r.SessionID)
	if err != nil {
		return err
	}
	up := k.upstream(l)
	k.mu.Lock()
	old, replaced := k.subs[r.ID]
	elsewhere := replaced && old.up != up
	k.mu.Unlock()
	if elsewhere { // only this goroutine adds subscriptions
		if err := k.cancel(r.ID); err != nil {
			return err
		}
	}
	k.mu.Lock()
	if elsewhere || !replaced {
		err = k.full()
	}
	if err == nil {
		k.subs[r.ID] = subscription{up: up, run: r.SessionID, live: r.Live}
		delete(up.over, r.ID)
	}
	k.mu.Unlock()
	if err != nil {
		return err
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
		k.Go(up.serve)
	}
	return up
}
