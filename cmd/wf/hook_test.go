package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/protocol"
)

const (
	hookKey  = "the key of a webhook, in a test"
	onPush   = "wf: 1\nname: push\nsecrets: [HOOK_KEY, HOOK_KEY_OLD]\ninputs: {ref: {type: string, required: true}, n: {type: integer, default: 1}, note: string}\n" + pushHook + "roles: {a: {set: {r: \"${{ inputs.ref }}\"}}}\noutputs: {r: \"${{ output.r }}\"}\n"
	pushHook = "on:\n  webhook:\n    kind: github\n    secret: [HOOK_KEY, HOOK_KEY_OLD]\n    if: event.headers[\"x-github-event\"] == \"push\"\n" +
		"    with: {ref: \"${{ event.body.ref }}\", n: \"${{ event.body.n }}\", note: \"${{ event.body.note }}\"}\n"
)

// answered is what a sender gets.
type answered struct {
	status int
	api.Started
	Code, Message string
}

// deliver sends an event as another service does, over the port and without a token.
func (s *served) deliver(name, body string, lines ...string) (a answered, err error) {
	r, err := http.NewRequest("POST", s.said.Listen[1].URL+protocol.WebhookPath+name, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	for _, l := range lines {
		key, value, _ := strings.Cut(l, ": ")
		r.Header.Set(key, value)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &a)
	}
	a.status = resp.StatusCode
	return a, err
}

func hmacOf(key, text string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// push is how GitHub sends a body: signed, with a delivery of its own each time.
func (s *served) push(body string, lines ...string) answered {
	s.t.Helper()
	a, err := s.deliver("push", body, append([]string{fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf(hookKey, body)), "X-GitHub-Event: push", "X-GitHub-Delivery: d-1"}, lines...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *served) runs() []protocol.RunID {
	s.t.Helper()
	heads, err := s.store.Heads(s.t.Context(), protocol.RunHead(""))
	if err != nil {
		s.t.Fatal(err)
	}
	var out []protocol.RunID
	for _, h := range heads {
		out = append(out, protocol.RunOf(h.Name))
	}
	return out
}

// awaitRuns waits until the store has so many runs.
func (s *served) awaitRuns(n int) []protocol.RunID {
	s.t.Helper()
	for {
		since, err := s.store.Changes(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if runs := s.runs(); len(runs) >= n {
			return runs
		}
		if _, err := s.store.AwaitChange(s.t.Context(), since); err != nil {
			s.t.Fatal(err)
		}
	}
}

func serveHooks(t *testing.T, dir string) *served {
	return startServe(t, dir, "--listen", "unix", "--listen", "127.0.0.1:0")
}

func TestEventsOfAnotherServiceStartRuns(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOOK_KEY", hookKey)
	t.Setenv("HOOK_KEY_OLD", "the key that was there before")
	t.Setenv("OTHER_KEY", hookKey)
	write(t, dir, "push.yaml", onPush)
	write(t, dir, "standard.yaml", "wf: 1\nname: standard\nsecrets: [OTHER_KEY]\non: {webhook: {kind: hmac, secret: OTHER_KEY}}\nroles: {a: {set: {x: 1}}}\n")
	write(t, dir, "unset.yaml", "wf: 1\nname: unset\nsecrets: [NO_KEY]\non: {webhook: {kind: github, secret: NO_KEY}}\nroles: {a: {set: {x: 1}}}\n")
	write(t, dir, "none.yaml", "wf: 1\nname: none\nroles: {a: {set: {x: 1}}}\n")
	s := serveHooks(t, dir)
	write(t, dir, "late.yaml", strings.Replace(onPush, "name: push", "name: late", 1)) // not trusted

	first := s.push(`{"ref":"main","n":3}`)
	if first.status != 202 || !first.Fresh || first.ID == "" {
		t.Fatalf("%+v", first)
	}
	v := s.awaitStatus(first.ID, protocol.Done)
	want := protocol.Trigger{Kind: "github", Name: "push", Delivery: "d-1"}
	if string(v.Info.Inputs) != `{"n":3,"ref":"main"}` || v.Info.CreatedBy != "webhook" || v.Info.Trigger == nil || *v.Info.Trigger != want || string(v.Outputs) != `{"r":"main"}` {
		t.Errorf("%s %+v %+v", v.Info.Inputs, v.Info, v.Info.Trigger)
	}
	if out, err := wfIn(dir, "show", string(first.ID)).Output(); err != nil || !strings.Contains(string(out), "the webhook of push (github, delivery d-1)") {
		t.Errorf("%s, %v", out, err)
	}
	// The same event, sent again with other headers, and by a sender that holds the old secret.
	if again := s.push(`{"ref":"main","n":3}`, "X-GitHub-Delivery: d-2", "X-GitHub-Event: fork"); again.status != 200 || again.Fresh || again.ID != first.ID {
		t.Errorf("again: %+v", again)
	}
	old, err := s.deliver("push", `{"ref":"old"}`, fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf("the key that was there before", `{"ref":"old"}`)), "X-GitHub-Event: push")
	if err != nil || old.status != 202 || old.ID == first.ID {
		t.Errorf("the old secret: %+v, %v", old, err)
	}
	// What a notification of wf begins says so; the fourth in a row is refused.
	if a := s.push(`{"ref":"caused"}`, "wf-caused-by: "+string(first.ID)+":5:3"); a.status != 202 {
		t.Errorf("caused by a notification: %+v", a)
	} else if c := s.awaitStatus(a.ID, protocol.Done).Info.CausedBy; c == nil || c.Run != first.ID || c.Depth != 3 {
		t.Errorf("caused by %+v", c)
	}
	if a := s.push(`{"ref":"fourth"}`, "wf-caused-by: "+string(first.ID)+":5:4"); a.status != 422 {
		t.Errorf("the fourth in a row: %+v", a)
	}
	began := len(s.runs())
	for name, test := range map[string]struct {
		body   string
		lines  []string
		status int
	}{
		"a ping":              {`{"zen":"…"}`, []string{"X-GitHub-Event: ping"}, 204},
		"not wanted":          {`{"ref":"x"}`, []string{"X-GitHub-Event: issues"}, 204},
		"no JSON":             {`{"ref":`, nil, 422},
		"text":                {`ref`, []string{"Content-Type: text/plain"}, 422},
		"another type":        {`{"ref":["s3cr3t"]}`, nil, 422},
		"a required input":    {`{"n":1}`, nil, 422},
		"the declared secret": {`{"ref":"x","note":"` + hookKey + `"}`, nil, 422},
		"the shape of a key":  {`{"ref":"ghp_` + strings.Repeat("a1B2", 9) + `"}`, nil, 422},
	} {
		a := s.push(test.body, test.lines...)
		if a.status != test.status || strings.Contains(a.Message, "s3cr3t") || strings.Contains(a.Message, "ref") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, name := range []string{"unset", "none", "late", "nothing"} {
		a, err := s.deliver(name, "{}", fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf(hookKey, "{}")))
		if err != nil || a.status != 401 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if n := len(s.runs()); n != began {
		t.Errorf("%d runs, %d before", n, began)
	}
	if log := s.err.String(); strings.Contains(log, hookKey) || !strings.Contains(log, "the webhook waits for trust") || !strings.Contains(log, "the secret of the webhook is not set") {
		t.Error("the log holds a secret, or does not say why a webhook is not served")
	}
	// A form is how GitHub sends JSON unless its settings say otherwise.
	if a := s.push("payload=%7B%22ref%22%3A%22form%22%7D", "Content-Type: application/x-www-form-urlencoded"); a.status != 202 || string(s.awaitStatus(a.ID, protocol.Done).Info.Inputs) != `{"n":1,"ref":"form"}` {
		t.Errorf("a form: %+v", a)
	}
	// Standard Webhooks: what distinguishes an event is its id, also where the body is another one.
	send := func(id, body string, at time.Time) answered {
		when := fmt.Sprint(at.Unix())
		a, err := s.deliver("standard", body, "webhook-id: "+id, "webhook-timestamp: "+when,
			"webhook-signature: v1,"+base64.StdEncoding.EncodeToString(hmacOf(hookKey, id+"."+when+"."+body)))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a, b, c := send("msg_1", "{}", time.Now()), send("msg_1", `{"a":1}`, time.Now().Add(time.Second)), send("msg_2", "{}", time.Now())
	if a.status != 202 || b.status != 200 || b.ID != a.ID || c.status != 202 || c.ID == a.ID {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
	if old := send("msg_3", "{}", time.Now().Add(-time.Hour)); old.status != 401 {
		t.Errorf("an hour old: %+v", old)
	}
	// Whatever the client may do besides, a webhook needs a signature.
	if status := s.call("POST", protocol.WebhookPath+"push", map[string]string{"ref": "main"}, nil); status != 401 {
		t.Errorf("over the socket of the user: %d", status)
	}
	// An event whose run was deleted was started.
	if out, err := wfIn(dir, "rm", string(first.ID), "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	began = len(s.runs())
	if again := s.push(`{"ref":"main","n":3}`); again.status != 200 || again.Fresh || again.ID != first.ID || len(s.runs()) != began {
		t.Errorf("behind its deletion: %+v", again)
	}
	list := s.workflows()
	if w := list["push"]; w.Webhook != "/v1/hooks/push" || w.WebhookProblem != "" {
		t.Errorf("%+v", w)
	}
	if w := list["late"]; !strings.Contains(w.WebhookProblem, "wf trust ") || w.Waits {
		t.Errorf("%+v", w)
	}
	if w := list["unset"]; !strings.Contains(w.WebhookProblem, "secret is not set") {
		t.Errorf("%+v", w)
	}
}

// workflows are those that are served, by name.
func (s *served) workflows() map[string]api.Workflow {
	s.t.Helper()
	var list struct{ Items []api.Workflow }
	s.call("GET", "/v1/workflows", nil, &list)
	out := map[string]api.Workflow{}
	for _, w := range list.Items {
		out[w.Name] = w
	}
	return out
}

func TestTheSameEventFiftyTimesAtOnceIsOneRun(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOOK_KEY", hookKey)
	write(t, dir, "push.yaml", onPush)
	s := serveHooks(t, dir)
	var mu sync.Mutex
	statuses, ids := map[int]int{}, map[protocol.RunID]bool{}
	var work sync.WaitGroup
	const body = `{"ref":"main"}`
	for i := range 50 {
		work.Go(func() {
			a, err := s.deliver("push", body, fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf(hookKey, body)), "X-GitHub-Event: push", fmt.Sprintf("X-GitHub-Delivery: d-%d", i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			statuses[a.status]++
			ids[a.ID] = true
		})
	}
	work.Wait()
	if statuses[202] != 1 || statuses[200] != 49 || len(ids) != 1 || len(s.runs()) != 1 {
		t.Errorf("%v, %v, %v", statuses, ids, s.runs())
	}
}

// A daemon that is killed while it takes an event has the run on disk or has not; its sender tries again, and one run
// comes of it.
func TestADaemonKilledWhileItTakesAnEvent(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOOK_KEY", hookKey)
	write(t, dir, "push.yaml", onPush)
	var last []protocol.RunID
	for i, moment := range []string{"it is sent", "something is committed", "it is answered", "its run has ended"} {
		s := serveHooks(t, dir)
		for _, run := range last { // of the daemon that was killed
			s.awaitStatus(run, protocol.Done)
		}
		body := fmt.Sprintf(`{"ref":"r%d"}`, i)
		sign := fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf(hookKey, body))
		before, err := s.store.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan answered, 1)
		go func() {
			a, err := s.deliver("push", body, sign, "X-GitHub-Event: push")
			if err != nil {
				a.status = 0 // cut off
			}
			sent <- a
		}()
		switch moment {
		case "something is committed":
			if _, err := s.store.AwaitChange(t.Context(), before); err != nil {
				t.Fatal(err)
			}
		case "it is answered":
			sent <- <-sent
		case "its run has ended":
			a := <-sent
			sent <- a
			s.awaitStatus(a.ID, protocol.Done)
		}
		s.kill()
		first := <-sent
		s = serveHooks(t, dir)
		again := s.push(body)
		if again.status != 202 && again.status != 200 || first.status == 202 && (again.status != 200 || again.ID != first.ID) {
			t.Errorf("killed when %s: %+v, then %+v", moment, first, again)
		}
		if last = s.awaitRuns(i + 1); len(last) != i+1 {
			t.Errorf("%d events gave %d runs", i+1, len(last))
		}
		s.awaitStatus(again.ID, protocol.Done)
		s.kill()
	}
}

// A hub cannot check what it does not read: events go to workers.
func TestAHubHasNoWebhooks(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "hub"))
	var hub api.HubServing
	if err := json.Unmarshal(p.line, &hub); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(hub.Listen[0].URL+protocol.WebhookPath+"push", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 404 || !strings.Contains(string(body), "webhooks are taken by the worker itself") {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
}
