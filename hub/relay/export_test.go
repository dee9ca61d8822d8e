package relay

import (
	"context"

	"github.com/coder/websocket"

	"wf/hub/client"
)

// SpeakFirst dials in as a worker and says a line; it returns the code of the refusal, "" for a
// link that just ends.
func SpeakFirst(ctx context.Context, hub, first string) string {
	base, via, err := client.Reach(hub, nil)
	if err != nil {
		return err.Error()
	}
	defer via.CloseIdleConnections()
	c, _, err := websocket.Dial(ctx, base+WorkerPath, &websocket.DialOptions{HTTPClient: via, Subprotocols: []string{Subprotocol}})
	if err != nil {
		return err.Error()
	}
	defer c.CloseNow()
	tunnel, err := newTunnel(ctx, c, false, discard)
	if err != nil {
		return err.Error()
	}
	defer tunnel.Close()
	control, err := tunnel.Open()
	if err != nil {
		return err.Error()
	}
	if _, err := control.Write([]byte(first + "\n")); err != nil {
		return ""
	}
	m, err := newLines(control).next(dialTime)
	if err != nil {
		return ""
	}
	return m.Code
}

// Routes are the paths of the hub with the scopes that they want.
func Routes() map[string]string {
	out := map[string]string{}
	for _, r := range routes {
		out[r.path] = string(r.scope)
	}
	return out
}

// GraceOver is closed when the hub no longer waits for workers to come back.
func GraceOver(h *Hub) <-chan struct{} { return h.graceOver }

// Once dials the hub once, and returns why that ended.
func (a *Worker) Once(ctx context.Context) error {
	if err := a.prepare(); err != nil {
		return err
	}
	_, err := a.connect(ctx)
	return err
}

// Linked reports whether a worker is connected to a hub itself, Drains whether the hub gives it no jobs.
func Linked(h *Hub, worker string) bool { return h.link(worker) != nil }
func Drains(h *Hub, worker string) bool {
	l := h.link(worker)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}
