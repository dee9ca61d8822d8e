package replay_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"wf/hub/guard"
	"wf/hub/internal/memfeed"
	"wf/hub/replay"
	"wf/protocol"
)

// One client takes not all sockets and streams, whatever it opens: others get theirs, and the owner has some when all of
// the others are taken. Below, at and beyond each bound, as the server has them where nothing else is said.
func TestF406OneTokenTakesNotAllSockets(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 3, "e")
	s := &replay.Server{Feed: m}
	mux := http.NewServeMux()
	mux.Handle("GET /v1/replay", s.WebSocket())
	mux.Handle("GET /v1/sessions/{id}/events", s.Events())
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // a guard that believes what is said
		id := guard.Identity{Name: r.Header.Get("By"), Scopes: []guard.Scope{guard.Read}}
		if id.Name == "owner" {
			id.Scopes = guard.AllScopes
		}
		mux.ServeHTTP(w, r.WithContext(guard.With(r.Context(), id)))
	}))
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(func() {
		leave()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		h.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	asked := 0
	open := func(by string) (status int, retry, why string) { // sockets and streams by turns
		t.Helper()
		asked++
		header := http.Header{"By": {by}}
		var resp *http.Response
		var err error
		if asked%2 == 0 {
			var c *websocket.Conn
			if c, resp, err = websocket.Dial(ctx, h.URL+"/v1/replay", &websocket.DialOptions{HTTPHeader: header}); err == nil {
				t.Cleanup(func() { c.CloseNow() })
				return resp.StatusCode, "", ""
			}
			if resp == nil {
				t.Fatal(err)
			}
		} else {
			r, err := http.NewRequestWithContext(ctx, "GET", h.URL+"/v1/sessions/run/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header
			if resp, err = http.DefaultClient.Do(r); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { resp.Body.Close() })
		}
		if resp.StatusCode == http.StatusOK {
			return resp.StatusCode, "", ""
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Retry-After"), string(b)
	}
	takes := func(by string, n int) {
		t.Helper()
		for i := range n {
			if status, _, why := open(by); status != 200 && status != 101 {
				t.Fatalf("%s, %d: %d %s", by, i+1, status, why)
			}
		}
	}
	refused := func(by, words string) {
		t.Helper()
		for range 2 {
			if status, retry, why := open(by); status != 429 || retry == "" || !strings.Contains(why, `"code":"rate_limited"`) || !strings.Contains(why, words) {
				t.Errorf("%s: %d, Retry-After %q, %s", by, status, retry, why)
			}
		}
	}
	const each, kept = protocol.MaxSockets / 4, protocol.MaxSockets / 8
	takes("reader", each)
	refused("reader", fmt.Sprintf("one client may have %d sockets and streams here at once", each))
	takes("other", each)
	takes("third", each)
	takes("fourth", protocol.MaxSockets-kept-3*each)
	refused("fourth", fmt.Sprintf("all %d sockets and streams are taken that are not kept for others", protocol.MaxSockets-kept))
	takes("owner", kept)
	refused("owner", fmt.Sprintf("all %d sockets and streams are taken", protocol.MaxSockets))
}
