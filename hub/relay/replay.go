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

// subscription is where a replay_request went.
type subscription struct {
	up   *upstream
	run  protocol.RunID
	live bool
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
		cancel, err := protocol.Request{Type: protocol.FrameCancel, ID: r.ID}.Encode(k.Codec)
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
		k.Go(up.serve)
	}
	return up
}
