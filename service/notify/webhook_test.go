package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/protocol"
	"wf/roles"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// post sends a message to a webhook.
func post(t *testing.T, s protocol.Sink, env map[string]string) error {
	t.Helper()
	s.Name = "ops"
	w, err := newWebhook(s, func(name string) (string, bool) { v, ok := env[name]; return v, ok }, func() time.Time { return time.Unix(1_800_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	defer w.client.CloseIdleConnections()
	return w.send(t.Context(), &Message{ID: "msg_1", caused: protocol.CausedBy{Run: "R", Seq: 3, Depth: 2}}, []byte(`{"id":"msg_1"}`))
}

func TestAWebhookIsSigned(t *testing.T) {
	key, _ := protocol.WebhookKey(testSecret)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h := r.Header
		if err != nil || h.Get("webhook-id") != "msg_1" || h.Get("webhook-timestamp") != "1800000000" || h.Get("wf-caused-by") != "R:3:2" || h.Get("content-type") != "application/json" ||
			protocol.SignWebhook(key, "msg_1", "1800000000", body) != h.Get("webhook-signature") {
			t.Errorf("%v %s %v", h, body, err)
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer srv.Close()
	if err := post(t, protocol.Sink{Webhook: srv.URL, Secret: "OPS"}, map[string]string{"OPS": testSecret}); err != nil {
		t.Error(err)
	}
	if err := post(t, protocol.Sink{Webhook: srv.URL, Secret: "OPS"}, nil); err == nil || !strings.Contains(err.Error(), "OPS is not set") {
		t.Error(err)
	}
}

func TestWhatAReceiverAnswersIsJudged(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(make([]byte, 3*answerMax)) // of which most is not read
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/busy":
			w.Header().Set("Retry-After", "90")
			http.Error(w, "later,\x1b please\nthe key is "+testSecret+strings.Repeat("x", 1000), http.StatusServiceUnavailable)
		case "/never":
			w.Header().Set("Retry-After", "999999999")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer srv.Close()
	if err := post(t, protocol.Sink{Webhook: srv.URL + "/ok"}, nil); err != nil {
		t.Error(err)
	}
	if err := post(t, protocol.Sink{Webhook: srv.URL + "/away"}, nil); err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Error(err)
	}
	var f failure
	if err := post(t, protocol.Sink{Webhook: srv.URL + "/gone"}, nil); !errors.As(err, &f) || !f.final {
		t.Error(err)
	}
	roles.Conceal("OPS", testSecret)
	if err := post(t, protocol.Sink{Webhook: srv.URL + "/busy"}, nil); !errors.As(err, &f) || f.final || f.after != 90*time.Second || strings.Contains(err.Error(), testSecret) || len(err.Error()) > errorMax+100 || strings.Contains(err.Error(), "\n") {
		t.Error(err, f.after)
	}
	if err := post(t, protocol.Sink{Webhook: srv.URL + "/never"}, nil); !errors.As(err, &f) || f.after != lastPause {
		t.Error(err, f.after)
	}
}

// A name that leads to this machine is refused, unless it is named under network.
func TestAPrivateAddressMustBeNamed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	by := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	host := strings.TrimPrefix(by, "http://")
	if err := post(t, protocol.Sink{Webhook: by}, nil); err == nil || !strings.Contains(err.Error(), "private network") {
		t.Error(err)
	}
	if err := post(t, protocol.Sink{Webhook: by, NetworkHosts: []string{host}}, nil); err != nil {
		t.Error(err)
	}
}

// A receiver that never answers does not hold a delivery for ever.
func TestAReceiverThatStallsIsLeft(t *testing.T) {
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer srv.Close()
	defer close(done)
	w, err := newWebhook(protocol.Sink{Name: "ops", Webhook: srv.URL}, nil, time.Now)
	if err != nil || w.client.Timeout != webhookTime {
		t.Fatal(err)
	}
	w.client.Timeout = 20 * time.Millisecond
	if err := w.send(context.Background(), &Message{ID: "m"}, nil); err == nil {
		t.Error("a receiver that does not answer has taken it")
	}
}

// A walled command is kept, and ends as the test says.
type walled struct {
	roles.Bare
	cmd    roles.Command
	stdin  string
	status int
}

func (w *walled) Run(_ context.Context, c roles.Command) (int, error) {
	w.cmd = c
	b, err := io.ReadAll(c.Stdin)
	w.stdin = string(b)
	_, _ = io.WriteString(c.Stdout, "no such host")
	return w.status, err
}

func (w *walled) Met(roles.Command, string) string { return "it met a wall: network" }

func TestACommandRunsWithinWallsWithTheMessageOnStdin(t *testing.T) {
	w := &walled{}
	s := protocol.Sink{Name: "c", Command: "cat", NetworkHosts: []string{"example.com:443"}}
	m := &Message{ID: "msg_1", Run: "R", workspace: "/work", caused: protocol.CausedBy{Run: "R", Seq: 3, Depth: 1}}
	if err := (command{s, w}).send(t.Context(), m, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	env := strings.Join(w.cmd.Env, " ")
	if w.stdin != "{}\n" || w.cmd.Line != "cat" || w.cmd.Workspace != "/work" || w.cmd.Network || len(w.cmd.Hosts) != 1 || !strings.Contains(env, "WF_CAUSED_BY=R:3:1") || !strings.Contains(env, "WF_NOTIFICATION_ID=msg_1") {
		t.Errorf("%q %+v", w.stdin, w.cmd)
	}
	w.status = 7
	err := (command{s, w}).send(t.Context(), m, []byte(`{}`))
	if err == nil || !strings.Contains(err.Error(), "ended with 7: no such host") || !strings.Contains(err.Error(), "met a wall") {
		t.Error(err)
	}
	if err := (command{s, nil}).send(t.Context(), m, nil); err == nil {
		t.Error("a command runs without walls")
	}
}

func TestADesktopShowsNoMarkup(t *testing.T) {
	title, text := shownOn(&Message{Workflow: "a\x1b[31m", On: protocol.OnFailed, Status: protocol.Suspended, Run: "R", Question: "<b>x</b> & y\u202e"})
	if title != "a[31m is suspended by an error" || escaped(text) != "&lt;b&gt;x&lt;/b&gt; &amp; y\nwf show R" {
		t.Errorf("%q %q", title, escaped(text))
	}
}

// A receiver quotes the address, which holds a key, wherever HTTP lets it. Callers other than the owner do not see it.
func TestNothingThatAReceiverSaysShowsTheAddress(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 400 %s\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n%s", "%s\r\n\r\n",
		"HTTP/1.1 %s\r\n\r\n", "HTTP/1.1 400 Bad\r\n%s\r\n\r\n", "HTTP/1.1 400 Bad\r\nContent-Length: %s\r\n\r\n", "HTTP/1.1 307 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 400 Bad\r\nTransfer-Encoding: %s\r\n\r\n", "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(conn, answer, r.URL.Path)
			conn.Close()
		}))
		err := post(t, protocol.Sink{Webhook: srv.URL + "/services/topmost"}, nil)
		srv.Close()
		if err == nil {
			t.Errorf("%q is no failure", answer)
			continue
		}
		l := &api.NotificationList{Items: []api.Notification{{Error: brief(err.Error())}}}
		Outline(l, nil)
		if got := l.Items[0].Error; strings.Contains(got, "topmost") || got == "" {
			t.Errorf("%q: others than the owner see %q", answer, got)
		}
	}
}
