// Package socketend holds what every WebSocket of the replay protocol does at its ends: to want one,
// to find out that the client is gone, and to say why it is closed.
package socketend

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"wf/hub/reply"
	"wf/protocol"
)

// LastWrite is how long a write that is under way has when the socket ends.
const LastWrite = time.Second

// Writers are the goroutines that write to a socket. The zero value is ready for use.
//
// The reader of a socket begins some of them with what it reads, while the socket may be ending
// already: so the group closes, where a sync.WaitGroup alone may be awaited and missed.
type Writers struct {
	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

// Go calls f in a goroutine of its own; false when Wait was called before: f is then not called.
func (w *Writers) Go(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.all.Go(f)
	}
	return !w.closed
}

// Wait lets nothing new begin, and returns when all that began has ended.
func (w *Writers) Wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.all.Wait()
}

// Wanted reports whether a request asks for a WebSocket; one that does not is answered with an error.
func Wanted(w http.ResponseWriter, r *http.Request, protocols ...string) bool {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return true
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	reply.JSON(w, http.StatusUpgradeRequired, reply.FailureOf(reply.Badf("%s is a WebSocket of the subprotocol %s; send Upgrade: websocket",
		r.URL.Path, strings.Join(protocols, " or "))))
	return false
}

// Gone pings a client until two pings in a row had no answer, and reports true, or until ctx
// ends. Browsers answer by themselves.
func Gone(ctx context.Context, conn *websocket.Conn, every time.Duration) bool {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for missed := 0; missed < 2; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		ping, done := context.WithTimeout(ctx, every)
		err := conn.Ping(ping)
		done()
		if missed++; err == nil {
			missed = 0
		}
	}
	return true
}

// Bye closes a connection with a frame and a status that say why, if the client still listens.
func Bye(conn *websocket.Conn, codec protocol.Codec, why error) {
	status := websocket.StatusInternalError
	switch {
	case errors.Is(why, protocol.ErrShuttingDown):
		status = websocket.StatusGoingAway
	case errors.Is(why, protocol.ErrTooLarge):
		status = websocket.StatusMessageTooBig
	case errors.Is(why, protocol.ErrTooSlow):
		status = websocket.StatusTryAgainLater
	case errors.Is(why, protocol.ErrUnauthorized):
		status = websocket.StatusPolicyViolation
	}
	f := protocol.ReplayError("", why)
	b, err := f.Encode(codec)
	if err == nil {
		ctx, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		err = conn.Write(ctx, Kind(codec), b)
	}
	if err != nil {
		conn.CloseNow()
		return
	}
	conn.Close(status, f.Code)
}

// Kind is the type of the messages of a codec.
func Kind(c protocol.Codec) websocket.MessageType {
	if c == protocol.CBORFrames {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}
