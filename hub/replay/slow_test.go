package replay_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"wf/hub/internal/memfeed"
	"wf/hub/internal/pipes"
	"wf/hub/replay"
	"wf/protocol"
)

// F-73: a client that reads, but takes longer for a frame than it may, is told too_slow, in a frame
// and by the status of the close; one that is in time is served on.
func TestAClientThatReadsTooSlowlyIsToldSo(t *testing.T) {
	for _, c := range []struct {
		takes   time.Duration
		tooSlow bool
	}{{10 * time.Second, false}, {11 * time.Second, true}} { // over the limit, within what is left for a last word
		synctest.Test(t, func(t *testing.T) { // the clock is that of the bubble
			m := memfeed.New()
			m.Add("run", 1, "e")
			s := &replay.Server{Feed: m, WriteTimeout: 10 * time.Second, PingEvery: time.Hour, Heartbeat: time.Hour}
			l := pipes.New()
			h := &http.Server{Handler: s.WebSocket()}
			served := make(chan error, 1)
			go func() { served <- h.Serve(l) }()

			wire := &http.Transport{DialContext: l.Dial}
			conn, _, err := websocket.Dial(t.Context(), "http://pipe/", &websocket.DialOptions{
				HTTPClient: &http.Client{Transport: wire}, Subprotocols: []string{protocol.JSONFrames.Subprotocol()}})
			if err != nil {
				t.Fatal(err)
			}
			conn.SetReadLimit(protocol.MaxFrame)
			p := &peer{t, conn, protocol.JSONFrames}
			p.ask(`{"type":"replay_request","id":"x","sessionId":"run","fromSeq":0,"live":true}`)
			<-time.After(c.takes)
			if f := p.read(); len(events(f)) != 1 {
				t.Errorf("first comes %+v", f)
			}
			if c.tooSlow {
				f := p.read()
				for f.Type != protocol.FrameReplayError {
					f = p.read()
				}
				if f.Code != protocol.ErrTooSlow.Code {
					t.Errorf("the socket ends with %q", f.Code)
				}
				if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
					t.Errorf("closed by %v", err)
				}
			} else {
				m.Add("run", 1, "f")
				f := p.read()
				for len(events(f)) == 0 && f.Type != protocol.FrameReplayError {
					f = p.read()
				}
				if f.Type == protocol.FrameReplayError {
					t.Errorf("the socket ends with %q", f.Code)
				}
			}
			conn.CloseNow()
			if err := errors.Join(s.Close(), h.Close()); err != nil {
				t.Error(err)
			}
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
			wire.CloseIdleConnections()
		})
	}
}
