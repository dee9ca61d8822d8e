package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wf/api"
	"wf/protocol"
	"wf/service/notify"
)

const notifySecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A notified is a receiver on loopback, which the config of the user of a directory names.
type notified struct {
	t      *testing.T
	server *httptest.Server
	came   chan notify.Message
	answer func(*http.Request) int // before it counts as come
}

const setYAML = "wf: 1\nname: set\nroles: {a: {set: {x: 1}}}\n"

func receive(t *testing.T, dir string, answer func(*http.Request) int) *notified {
	t.Helper()
	n := &notified{t: t, came: make(chan notify.Message, 100), answer: answer}
	key, err := protocol.WebhookKey(notifySecret)
	if err != nil {
		t.Fatal(err)
	}
	n.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m notify.Message
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		h := r.Header
		if err != nil || m.ID != h.Get(protocol.WebhookIDHeader) || protocol.SignWebhook(key, m.ID, h.Get(protocol.WebhookTimeHeader), body) != h.Get(protocol.WebhookSignatureHeader) {
			t.Errorf("not a notification that is signed: %v %v %s", err, h, body)
		}
		status := n.answer(r)
		if w.WriteHeader(status); status/100 == 2 {
			n.came <- m
		}
	}))
	t.Cleanup(n.server.Close)
	config := filepath.Join(dir, ".config", "wf")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, config, "config.yaml", fmt.Sprintf("notify:\n  - {name: ops, webhook: %s, secret: OPS_KEY}\n", n.server.URL))
	return n
}

func always(status int) func(*http.Request) int {
	return func(*http.Request) int { return status }
}

// next is the next notification.
func (n *notified) next() notify.Message {
	n.t.Helper()
	select {
	case m := <-n.came:
		return m
	case <-time.After(time.Minute):
		n.t.Fatal("no notification comes")
		return notify.Message{}
	}
}

func hooksIn(t *testing.T, dir string) api.Hook {
	t.Helper()
	out, err := wfIn(dir, "hook", "ls", "-o", "json").Output()
	var all api.Hooks
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all.Sinks) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return all.Sinks[0]
}

// awaitHooks reads what is to be delivered until it is as it should be: what a receiver has is noted a moment later.
func awaitHooks(t *testing.T, s *served, is func(api.Hook) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		since, err := s.store.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h := hooksIn(t, s.dir)
		if is(h) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v\n%s", h, s.err)
		}
		if _, err := s.store.AwaitChange(t.Context(), since); err != nil {
			t.Fatal(err)
		}
	}
}

// A daemon that is killed between the answer of a receiver and the note of it delivers again, under the same id; and
// the other way round nothing is lost.
func TestADaemonThatIsKilledWhileItDeliversDeliversAgain(t *testing.T) {
	t.Setenv("OPS_KEY", notifySecret)
	dir := t.TempDir()
	write(t, dir, "set.yaml", setYAML)
	arrived, leave := make(chan string, 10), make(chan struct{})
	n := receive(t, dir, func(r *http.Request) int {
		arrived <- r.Header.Get(protocol.WebhookIDHeader)
		<-leave
		return 204
	})
	s := startServe(t, dir)
	run := s.started(map[string]any{"workflow": "set"})
	first := <-arrived
	s.kill()
	close(leave)
	if m := n.next(); m.ID != first || m.Run != run {
		t.Fatalf("%+v", m) // the receiver has it, and no process knows
	}
	s = startServe(t, dir)
	if m := n.next(); m.ID != first || m.Run != run || m.On != protocol.OnDone || m.Status != protocol.Done || m.Workflow != "set" {
		t.Errorf("%+v, not %s of run %s", m, first, run)
	}
	awaitHooks(t, s, func(h api.Hook) bool { return h.Delivered == 1 && h.Waiting == 0 })
	s.kill()
	s = startServe(t, dir)
	again := s.started(map[string]any{"workflow": "set"})
	if m := n.next(); m.Run != again {
		t.Errorf("%+v comes again after it was noted", m)
	}
}

// Of two daemons at one store one delivers, and the other goes on when it is killed.
func TestTwoDaemonsDeliverOnce(t *testing.T) {
	t.Setenv("OPS_KEY", notifySecret)
	dir := t.TempDir()
	write(t, dir, "set.yaml", setYAML)
	n := receive(t, dir, always(200))
	one := startServe(t, dir)
	two := startServe(t, dir, "--listen", "unix:"+filepath.Join(dir, "two.sock"))
	var want, got []string
	start := func(s *served) {
		t.Helper()
		want = append(want, string(s.started(map[string]any{"workflow": "set"})))
		got = append(got, string(n.next().Run))
	}
	start(one)
	start(two)
	start(two)
	awaitHooks(t, two, func(h api.Hook) bool { return h.Delivered == 3 })
	one.kill()
	start(two)
	start(two)
	if !slices.Equal(got, want) || len(n.came) > 0 {
		t.Errorf("notified of %v, and %d more, of %v", got, len(n.came), want)
	}
}

// A command delivers its own run, and says what it leaves to a daemon.
func TestARunAtATerminalLeavesToADaemonWhatDoesNotGetThrough(t *testing.T) {
	t.Setenv("OPS_KEY", notifySecret)
	dir := t.TempDir()
	write(t, dir, "set.yaml", setYAML)
	var status atomic.Int32
	status.Store(503)
	n := receive(t, dir, func(*http.Request) int { return int(status.Load()) })
	out, err := wfIn(dir, "run", "set.yaml").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "1 notification waits for wf serve") {
		t.Fatalf("%v: %s", err, out)
	}
	h := hooksIn(t, dir)
	if h.Waiting != 1 || h.Deliveries[0].Attempts > 1 {
		t.Fatalf("%+v", h)
	}
	if x := h.Deliveries[0]; x.Attempts == 1 && (!strings.Contains(x.Error, "503") || x.Next == nil) { // 0: a receiver that took all the time
		t.Errorf("%+v", x)
	}
	status.Store(200)
	if out, err = wfIn(dir, "run", "set.yaml").CombinedOutput(); err != nil || strings.Contains(string(out), "notification") == (len(n.came) > 0) {
		t.Errorf("%d came: %v: %s", len(n.came), err, out)
	}
	if out, err := wfIn(dir, "hook", "retry", h.Deliveries[0].ID).CombinedOutput(); err != nil || string(out) != "1 notification will be attempted again\n" {
		t.Errorf("%v: %s", err, out)
	}
	startServe(t, dir)
	if a, b := n.next(), n.next(); a.On != protocol.OnDone || b.On != protocol.OnDone || a.Run == b.Run {
		t.Errorf("%+v, %+v", a, b)
	}
	if out, err := wfIn(dir, "verify", "--all").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := wfIn(dir, "gc", "--grace", "0", "--yes").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if h = hooksIn(t, dir); len(h.Deliveries) != h.Waiting {
		t.Errorf("after a collection: %+v", h)
	}
}

// Notifications start runs, and those notify again: the fourth in a row is refused.
func TestRunsThatCauseOneAnotherEnd(t *testing.T) {
	t.Setenv("OPS_KEY", notifySecret)
	dir := t.TempDir()
	write(t, dir, "set.yaml", setYAML)
	causes := make(chan string, 10)
	n := receive(t, dir, func(r *http.Request) int {
		causes <- r.Header.Get(protocol.CausedByHeader)
		return 200
	})
	s := startServe(t, dir)
	var last protocol.RunID
	by := ""
	for depth := range protocol.MaxCausedBy + 1 {
		var x struct{ ID protocol.RunID }
		if status := s.call("POST", "/v1/runs", map[string]any{"workflow": "set", "caused_by": by}, &x); status != http.StatusCreated {
			t.Fatalf("run %d: %d", depth, status)
		}
		v := s.view(x.ID)
		if by == "" != (v.Info.CausedBy == nil) || by != "" && (v.Info.CausedBy.Run != last || v.Info.CausedBy.Depth != depth) {
			t.Errorf("run %d is caused by %+v, want %s", depth, v.Info.CausedBy, by)
		}
		last = n.next().Run
		by = <-causes
	}
	var refused struct{ Code, Message string }
	if status := s.call("POST", "/v1/runs", map[string]any{"workflow": "set", "caused_by": by}, &refused); status/100 != 4 || refused.Code != protocol.ErrCausedTooDeep.Code {
		t.Errorf("%d %+v", status, refused)
	}
	cmd := wfIn(dir, "run", "set.yaml", "-o", "json")
	cmd.Env = append(cmd.Env, protocol.CausedByEnv+"="+by)
	if out, err := cmd.Output(); exitOf(t, err) != 1 || !strings.Contains(string(out), protocol.ErrCausedTooDeep.Code) {
		t.Errorf("%v: %s", err, out)
	}
	cmd = wfIn(dir, "run", "set.yaml", "-o", "json")
	cmd.Env = append(cmd.Env, protocol.CausedByEnv+"="+strings.TrimSuffix(by, "4")+"3")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"depth": 3`) && !strings.Contains(string(out), `"depth":3`) {
		t.Errorf("%v: %s", err, out)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://wf/v1/runs", strings.NewReader(`{"workflow":"set"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(protocol.CausedByHeader, by)
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode/100 != 4 {
		t.Errorf("the header was not read: %d", answer.StatusCode)
	}
}
