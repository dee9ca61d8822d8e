package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/cas/castest"
	"wf/engine"
	"wf/files"
	"wf/protocol"
)

// A mailing is an event as a service sends it: the bytes, signed by that service's rule and not by ours.
type mailing struct {
	name, request, body string
	lines               []string
}

// mailed are events of each kind of sender.
var mailed = map[string]func(i int) mailing{
	"github": func(i int) mailing {
		body := fmt.Sprintf(`{"ref":"r%d"}`, i)
		return mailing{"push", fmt.Sprintf("webhook/push/github/%x", sha256.Sum256([]byte(body))), body,
			[]string{fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf(hookKey, body)), "X-GitHub-Event: push", fmt.Sprintf("X-GitHub-Delivery: d-%d", i)}}
	},
	"stripe": func(i int) mailing {
		body, at := fmt.Sprintf(`{"id":"evt_%d","ref":"r%d"}`, i, i), fmt.Sprint(time.Now().Unix())
		return mailing{"paid", fmt.Sprintf("webhook/paid/stripe/evt_%d", i), body, []string{fmt.Sprintf("Stripe-Signature: t=%s,v1=%x", at, hmacOf(hookKey, at+"."+body))}}
	},
	"hmac": func(i int) mailing {
		body, id, at := fmt.Sprintf(`{"ref":"r%d"}`, i), fmt.Sprintf("msg_%d", i), fmt.Sprint(time.Now().Unix())
		return mailing{"standard", "webhook/standard/hmac/" + id, body, []string{"webhook-id: " + id, "webhook-timestamp: " + at,
			"webhook-signature: v1," + base64.StdEncoding.EncodeToString(hmacOf(hookKey, id+"."+at+"."+body))}}
	},
}

// layHooks lays a workflow for each kind of sender.
func layHooks(t *testing.T, dir string) {
	t.Helper()
	t.Setenv("HOOK_KEY", hookKey)
	write(t, dir, "push.yaml", onPush)
	for name, kind := range map[string]string{"paid": "stripe", "standard": "hmac"} {
		write(t, dir, name+".yaml", "wf: 1\nname: "+name+"\nsecrets: [HOOK_KEY]\ninputs: {ref: string}\non: {webhook: {kind: "+kind+", secret: HOOK_KEY, with: {ref: \"${{ event.body.ref }}\"}}}\nroles: {a: {set: {r: \"${{ inputs.ref }}\"}}}\n")
	}
}

// clientOf is a client of so many connections at once.
func clientOf(n int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}, Timeout: time.Minute}
}

// mail sends an event, and gives what it was answered with.
func (s *served) mail(c *http.Client, m mailing) (a answered, err error) {
	r, err := http.NewRequest("POST", s.said.Listen[1].URL+protocol.WebhookPath+m.name, strings.NewReader(m.body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	for _, l := range m.lines {
		key, value, _ := strings.Cut(l, ": ")
		r.Header.Set(key, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		return a, err
	}
	b, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &a)
	}
	a.status = resp.StatusCode
	return a, err
}

// allDone waits until the store has exactly these runs, all of them done, and gives when each began, by its request.
func (s *served) allDone(requests []string) map[string]int64 {
	s.t.Helper()
	if s.t.Failed() { // not all of them will come
		s.t.FailNow()
	}
	s.awaitRuns(len(requests))
	want := map[protocol.RunID]string{}
	for _, request := range requests {
		want[engine.RequestRun(request)] = request
	}
	began := map[string]int64{}
	for _, run := range s.runs() {
		request, known := want[run]
		if !known {
			s.t.Errorf("the run %s is of no event", run)
			continue
		}
		delete(want, run)
		s.awaitStatus(run, protocol.Done)
		events, err := castest.Events(s.t.Context(), s.store, run, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		for i, e := range events {
			if (e.Type == protocol.EvRunStarted) != (i == 0) {
				s.t.Errorf("event %d of %s is %s", i+1, run, e.Type)
			}
		}
		if data, err := cas.DecodeData[protocol.RunStarted](&events[0].Event); err != nil || data.RequestID != request {
			s.t.Errorf("the run %s was begun by %q, %v", run, data.RequestID, err)
		}
		began[request] = events[0].TS
	}
	if len(want) > 0 {
		s.t.Errorf("%d events have no run", len(want))
	}
	return began
}

// A burst of 150 events at once, of senders that repeat nothing: each is taken, and has one run.
func TestABurstOfWebhooksLosesNothing(t *testing.T) {
	dir := t.TempDir()
	layHooks(t, dir)
	s := serveHooks(t, dir)
	client := clientOf(150)
	var work sync.WaitGroup
	var requests []string
	for kind, event := range mailed {
		for i := range 150 {
			m := event(i)
			requests = append(requests, m.request)
			work.Go(func() {
				// Strangers, and not the sender, are who the places for reading are bounded for: such a 503 is repeated.
				a, err := s.mail(client, m)
				for err == nil && a.status == 503 {
					a, err = s.mail(client, m)
				}
				if err != nil || a.status != 202 && a.status != 200 || a.ID != engine.RequestRun(m.request) {
					t.Errorf("%s %d: %+v, %v", kind, i, a, err)
				}
			})
		}
	}
	work.Wait()
	s.allDone(requests)
}

// 100 events a second on one hook: each gets 202 at once, and has one run; those that a sender sent one after the other begin in that order.
// WF_FAULTS=1 sends them for 30 s.
func TestAHundredWebhooksASecond(t *testing.T) {
	n := 300
	if os.Getenv("WF_FAULTS") != "" {
		n = 3000
	}
	dir := t.TempDir()
	layHooks(t, dir)
	s := serveHooks(t, dir)
	s.ready()
	client := clientOf(100)
	type sent struct {
		request  string
		from, to time.Time
	}
	var mu sync.Mutex
	var all []sent
	var work sync.WaitGroup
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		m := mailed["github"](i)
		work.Go(func() {
			from := time.Now()
			a, err := s.mail(client, m)
			x := sent{m.request, from, time.Now()}
			if err != nil || a.status != 202 || !a.Fresh || a.ID != engine.RequestRun(m.request) {
				t.Errorf("event %d: %+v, %v", i, a, err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, x)
		})
	}
	work.Wait()
	began := time.Now()
	var requests []string
	var took []time.Duration
	for _, x := range all {
		requests, took = append(requests, x.request), append(took, x.to.Sub(x.from))
	}
	slices.Sort(took)
	at := s.allDone(requests)
	t.Logf("%d events: p50 %v, p99 %v, longest %v to 202; all done %v later", n, took[n/2], took[n*99/100], took[n-1], time.Since(began))
	slices.SortFunc(all, func(a, b sent) int { return a.to.Compare(b.to) })
	newest, done := int64(0), 0 // of those that were answered before the next one was sent
	byFrom := slices.Clone(all)
	slices.SortFunc(byFrom, func(a, b sent) int { return a.from.Compare(b.from) })
	for _, x := range byFrom {
		for ; all[done].to.Before(x.from); done++ {
			newest = max(newest, at[all[done].request])
		}
		if at[x.request] < newest {
			t.Errorf("%s was sent when another one was answered, and began before it", x.request)
		}
	}
}

// The daemon is killed at least 20 times while events come, whatever it is about to do: each that was answered has its run, once.
func TestADaemonKilledInABurstOfWebhooks(t *testing.T) {
	kills := 20
	if os.Getenv("WF_FAULTS") != "" {
		kills = 200
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	layHooks(t, dir)
	trustAll(t, dir)
	var mu sync.Mutex
	var next int
	var answeredFor, unsure []mailing
	send := func(s *served, client *http.Client, one func()) {
		for {
			mu.Lock()
			next++
			i := next
			mu.Unlock()
			kind := []string{"github", "stripe", "hmac"}[i%3]
			m := mailed[kind](i)
			a, err := s.mail(client, m)
			mu.Lock()
			if err == nil && a.status == 202 {
				answeredFor = append(answeredFor, m)
			} else {
				unsure = append(unsure, mailed[kind](i))
			}
			mu.Unlock()
			if err != nil {
				return
			}
			if a.status != 202 && a.status != 503 {
				t.Errorf("%s: %+v", m.request, a)
			}
			one()
		}
	}
	for range kills {
		s := servedBy(t, dir, wfIn(dir, "serve", "-o", "json", "--listen", "unix", "--listen", "127.0.0.1:0"))
		client := clientOf(16)
		last := make(chan struct{})
		left := rng.IntN(80) // answers before the kill
		var work sync.WaitGroup
		if left == 0 {
			close(last)
		}
		var count int
		for range 8 {
			work.Go(func() {
				send(s, client, func() {
					mu.Lock()
					defer mu.Unlock()
					if count++; count == left {
						close(last)
					}
				})
			})
		}
		<-last
		s.kill()
		work.Wait()
		client.CloseIdleConnections()
	}
	s := servedBy(t, dir, wfIn(dir, "serve", "-o", "json", "--listen", "unix", "--listen", "127.0.0.1:0"))
	client := clientOf(1)
	var requests []string
	for _, m := range answeredFor {
		requests = append(requests, m.request)
	}
	for _, m := range unsure { // their sender repeats them
		a, err := s.mail(client, m)
		if err != nil || a.status != 202 && a.status != 200 {
			t.Fatalf("%s: %+v, %v", m.request, a, err)
		}
		requests = append(requests, m.request)
	}
	s.allDone(requests)
	t.Logf("%d kills, %d events were answered, %d were not", kills, len(answeredFor), len(unsure))
	for _, m := range answeredFor[:min(20, len(answeredFor))] {
		if a, err := s.mail(client, m); err != nil || a.status != 200 || a.ID != engine.RequestRun(m.request) {
			t.Errorf("sent again: %+v, %v", a, err)
		}
	}
}

// While no run can begin events are taken all the same, by the definition that was trusted then, and wait for the next start; the log and wf
// doctor say how many. They begin by that definition, whatever has become of the file and of the trust in it.
func TestEventsWaitWhileNoRunCanBegin(t *testing.T) {
	dir := t.TempDir()
	layHooks(t, dir)
	s := serveHooks(t, dir)
	s.ready()
	before := s.workflows()["push"].Definition
	free := holdStore(t, dir)
	client := clientOf(1)
	var requests []string
	for i := range 3 {
		m := mailed["github"](i)
		requests = append(requests, m.request)
		if a, err := s.mail(client, m); err != nil || a.status != 202 || a.ID != engine.RequestRun(m.request) {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if a, err := s.mail(client, mailed["github"](1)); err != nil || a.status != 200 || a.Fresh || a.ID != engine.RequestRun(requests[1]) {
		t.Errorf("sent again while it waits: %+v, %v", a, err)
	}
	if a, err := s.mail(client, mailing{"push", "", `{"ref":["no text"]}`, []string{fmt.Sprintf("X-Hub-Signature-256: sha256=%x", hmacOf(hookKey, `{"ref":["no text"]}`)), "X-GitHub-Event: push"}}); err != nil || a.status != 422 {
		t.Errorf("one that does not fit: %+v, %v", a, err)
	}
	s.kill()
	free()
	items := doctorOf(t, dir, 1) // nothing serves the webhooks
	if c := items["events"]; c.State != "note" || !strings.Contains(c.Text, "3 events of webhooks") || !strings.Contains(c.Text, "the oldest since 20") {
		t.Errorf("wf doctor says %+v", c)
	}
	write(t, dir, "push.yaml", strings.Replace(onPush, "roles: {a: {set: {r: \"${{ inputs.ref }}\"}}}", "roles: {a: {set: {r: \"another\"}}}", 1)) // and so it is trusted no more
	s = servedBy(t, dir, wfIn(dir, "serve", "-o", "json", "--listen", "unix", "--listen", "127.0.0.1:0"))
	s.allDone(requests)
	for i, request := range requests {
		v := s.view(engine.RequestRun(request))
		if want := fmt.Sprintf(`{"r":"r%d"}`, i); string(v.Outputs) != want || string(v.Definition) != before || v.Info.CreatedBy != "webhook" {
			t.Errorf("%s gave %s by %s, not %s by %s", request, v.Outputs, v.Definition, want, before)
		}
	}
	if a, err := s.mail(client, mailed["github"](9)); err != nil || a.status != 401 {
		t.Errorf("the file that is not trusted is served: %+v, %v", a, err)
	}
	if _, there := doctorOf(t, dir)["events"]; there {
		t.Error("wf doctor tells of events where none wait")
	}
}

// A clone, or the copy of another machine, may hold events: what this user's wf has not written begins nothing, and is told.
func TestEventsOfACloneBeginNothing(t *testing.T) {
	other, dir := t.TempDir(), t.TempDir()
	layHooks(t, other)
	s := serveHooks(t, other)
	s.ready()
	free := holdStore(t, other)
	if a, err := s.mail(clientOf(1), mailed["github"](1)); err != nil || a.status != 202 {
		t.Fatalf("%+v, %v", a, err)
	}
	s.kill()
	free()
	layHooks(t, dir)
	if err := os.CopyFS(filepath.Join(dir, ".wf"), os.DirFS(filepath.Join(other, ".wf"))); err != nil {
		t.Fatal(err)
	}
	if c := doctorSays(t, dir)["events"]; c.State != "bad" || !strings.Contains(c.Text, "another user wrote them") {
		t.Errorf("wf doctor says %+v", c)
	}
	s = serveHooks(t, dir)
	s.ready()
	awaitText(t, "events of webhooks cannot be read", s.err)
	m := mailed["github"](2)
	if a, err := s.mail(clientOf(1), m); err != nil || a.status != 202 {
		t.Fatalf("%+v, %v", a, err)
	}
	s.allDone([]string{m.request})
}

// doctorSays is doctorOf where wf doctor may find what does not work.
func doctorSays(t *testing.T, dir string) map[string]api.Checkup {
	t.Helper()
	out, err := wfIn(dir, "doctor", "-o", "json").Output()
	exitOf(t, err)
	var all api.Doctor
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := map[string]api.Checkup{}
	for _, c := range all.Items {
		found[c.Name] = c
	}
	return found
}

// holdStore keeps all others from a store, as a process does that stopped in a commit.
func holdStore(t *testing.T, dir string) (free func()) {
	t.Helper()
	var held []*os.File
	for _, name := range []string{"turn", "store.lock"} {
		f, err := os.OpenFile(filepath.Join(dir, ".wf", name), os.O_RDWR, 0)
		if err == nil {
			err = files.WaitLock(f, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, f)
	}
	return func() {
		for _, f := range held {
			if err := files.FreeLock(f); err != nil {
				t.Error(err)
			}
		}
	}
}
