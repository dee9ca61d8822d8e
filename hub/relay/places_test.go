package relay_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"wf/hub/guard"
	"wf/protocol"
)

// A token of the scope read takes not all sockets of a hub.
func TestF406OneTokenTakesNotAllSocketsOfAHub(t *testing.T) {
	h := newHouse(t)
	h.shut()
	keys := must(guard.OpenKeys(h.dir+"/tokens", nil))(t)
	tokens := map[string]string{"read": newToken(t, h.dir+"/tokens", "read"), "run": newToken(t, h.dir+"/tokens", "run read")}
	h.wrap = func(next http.Handler) http.Handler {
		return (&guard.Guard{Hosts: []string{h.addr}, Keys: keys}).Wrap(next)
	}
	h.open()
	open := func(token string) (*http.Response, error) {
		c, resp, err := websocket.Dial(t.Context(), "http://"+h.addr+"/v1/replay", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
		if err == nil {
			t.Cleanup(func() { c.CloseNow() })
		}
		return resp, err
	}
	const each = 4 * protocol.MaxSockets / 4 // a quarter of those of a hub
	for i := range each {
		if _, err := open(tokens["read"]); err != nil {
			t.Fatalf("socket %d: %v", i+1, err)
		}
	}
	resp, err := open(tokens["read"])
	if err == nil || resp == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Fatalf("one more: %+v, %v", resp, err)
	}
	b := make([]byte, 1000)
	n, _ := resp.Body.Read(b) // a short answer, at once
	if !strings.Contains(string(b[:n]), "one client may have 256 sockets and streams here at once") {
		t.Errorf("it says %s", b[:n])
	}
	if _, err := open(tokens["run"]); err != nil {
		t.Errorf("another token: %v", err)
	}
}
