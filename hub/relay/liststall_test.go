package relay_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"wf/hub/internal/pipes"
	"wf/hub/queue/embedded"
	"wf/hub/relay"
	"wf/protocol"
)

// A client that takes no frame gets no further list_request served in the place of one: its requests are read when that has ended, so it
// cannot have the hub keep any number of them.
func TestListRequestsOfAClientThatStallsAreNotRead(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := must(embedded.Open(filepath.Join(dir, "hub.db")))(t)
		hub := &relay.Hub{Queue: s.Queue, Registry: s.Registry, Pointers: s.Pointers, Name: "hub", Version: "1", Log: logger(t), Patience: time.Hour}
		l := pipes.New()
		h := &http.Server{Handler: served(everyone, hub.Handler())}
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(l) }()
		wire := &http.Transport{DialContext: l.Dial}
		dial := func() *websocket.Conn {
			conn, _, err := websocket.Dial(t.Context(), "http://pipe/v1/replay", &websocket.DialOptions{
				HTTPClient: &http.Client{Transport: wire}, Subprotocols: []string{protocol.FramesJSON}})
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		other := dial() // since it is told of the list, each further request is answered with a frame at once
		if err := other.Write(t.Context(), websocket.MessageText, []byte(`{"type":"list_request","id":"o","lists":["queue"]}`)); err != nil {
			t.Fatal(err)
		}
		if _, frame, err := other.Read(t.Context()); err != nil || !strings.Contains(string(frame), "list_changed") {
			t.Fatalf("%s, %v", frame, err)
		}
		conn := dial()
		const many = 100
		request := []byte(`{"type":"list_request","id":"l","lists":["queue"` + strings.Repeat(`,"queue"`, 500) + `]}`)
		sent := make(chan int, 1)
		go func() {
			n := 0
			for n < many && conn.Write(t.Context(), websocket.MessageText, request) == nil {
				n++
			}
			sent <- n
		}()
		synctest.Wait()
		conn.CloseNow()
		other.CloseNow()
		if n := <-sent; n > 10 { // one is served; the buffers on the way hold some
			t.Errorf("%d requests of a client that takes no frame were read", n)
		}
		wire.CloseIdleConnections()
		h.Close()
		<-ended
		hub.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
