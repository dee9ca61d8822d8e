package relay_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"wf/api"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/relay"
	"wf/hub/reply"
	"wf/protocol"
)

// remembering has a desk answer what is asked of memories, and tells which requests it got.
func (d *desk) remembering() (asked func() []string) {
	return d.asked("/v1/memories", func(path string) any {
		if path == "/v1/memories" {
			return api.MemoryScopes{Items: []api.MemoryScope{{Scope: "at " + d.worker.ID}}}
		}
		return map[string]any{}
	})
}

// asked has a desk answer what is asked below a path, and tells which requests it got.
func (d *desk) asked(below string, answer func(path string) any) (asked func() []string) {
	var got []string
	next := d.worker.Handler
	d.worker.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, below) {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			d.Error(err)
		}
		d.mu.Lock()
		got = append(got, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		d.mu.Unlock()
		reply.JSON(w, http.StatusOK, answer(r.URL.Path))
	})
	return func() []string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return got
	}
}

// awaitGrace waits until the hub no longer waits for workers to come back.
func (h *house) awaitGrace() {
	h.Helper()
	select {
	case <-relay.GraceOver(h.hub):
	case <-h.Context().Done():
		h.Fatal(h.Context().Err())
	}
}

func TestMemoriesAreThoseOfTheOnlyWorker(t *testing.T) {
	h := newHouse(t)
	service := client.Service{API: h.api}
	h.awaitGrace()
	if _, err := service.Scopes(t.Context()); !errors.Is(err, protocol.ErrWorkerAway) {
		t.Errorf("without a worker: %v", err)
	}
	a := newDesk(h, "a")
	asked := a.remembering()
	a.arrive()
	h.await(1)
	found, err := service.Scopes(t.Context())
	if err != nil || len(found.Items) != 1 || found.Items[0].Scope != "at a" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := service.Reindex(t.Context(), api.Reindex{Scope: "x"}, nil); err != nil {
		t.Error(err)
	}
	if got := strings.Join(asked(), "; "); got != `GET /v1/memories; POST /v1/memories/reindex {"scope":"x"}` {
		t.Error(got)
	}
}

// Nothing is written into the memory of a worker that was not meant.
func TestWhereThereAreSeveralWorkersTheOneWhoseMemoriesAreMeantIsNamed(t *testing.T) {
	h := newHouse(t)
	a, b := newDesk(h, "a"), newDesk(h, "b")
	askedA, askedB := a.remembering(), b.remembering()
	a.say("run", "x") // a worker with runs counts also while it is away
	a.arrive()
	b.arrive()
	h.await(2)
	h.awaitGrace()
	forget := api.MemoryChanges{Scope: "x", Changes: []api.MemoryChange{{ID: 1, Remove: true}}}
	_, err := client.Service{API: h.api}.ChangeMemories(t.Context(), forget)
	if !errors.Is(err, protocol.ErrAmbiguous) || !strings.Contains(err.Error(), "a (desk a), b (desk b)") {
		t.Errorf("no worker is named: %v", err)
	}
	if _, err := (client.Service{API: h.api, Worker: "b"}).ChangeMemories(t.Context(), forget); err != nil {
		t.Error(err)
	}
	if _, err := (client.Service{API: h.api, Worker: "c"}).Scopes(t.Context()); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("an unknown worker: %v", err)
	}
	a.leave()
	h.await(1)
	if _, err := (client.Service{API: h.api}).Scopes(t.Context()); !errors.Is(err, protocol.ErrAmbiguous) {
		t.Errorf("the worker a may come back: %v", err)
	}
	if _, err := (client.Service{API: h.api, Worker: "a"}).Scopes(t.Context()); !errors.Is(err, protocol.ErrWorkerAway) {
		t.Errorf("the worker a is away: %v", err)
	}
	if len(askedA()) != 0 || len(askedB()) != 1 || strings.Contains(askedB()[0], "agent=") {
		t.Errorf("a was asked %q, b %q", askedA(), askedB())
	}
}

// What is asked about a run is asked of the worker that has it, whichever others there are.
func TestNotificationsAboutARunAreThoseOfItsWorker(t *testing.T) {
	h := newHouse(t)
	a, b := newDesk(h, "a"), newDesk(h, "b")
	asked := map[string]func() []string{}
	for name, d := range map[string]*desk{"a": a, "b": b} {
		asked[name] = d.asked("/v1/notifications", func(path string) any {
			if path == "/v1/notifications" {
				return api.NotificationList{Schema: "wf.notifications/v1", Sinks: []api.Sink{{Name: "at " + name}}, Items: []api.Notification{}}
			}
			return api.NotificationsRetried{Schema: "wf.notifications_retried/v1", Retried: []string{"msg"}}
		})
	}
	a.say("ours", "x")
	b.say("theirs", "x")
	a.arrive()
	b.arrive()
	h.await(2)
	h.awaitGrace()
	at := client.Service{API: h.api}
	if _, err := at.Notifications(t.Context(), api.NotificationQuery{}); !errors.Is(err, protocol.ErrAmbiguous) {
		t.Errorf("without a run: %v", err)
	}
	for run, name := range map[protocol.RunID]string{"ours": "a", "theirs": "b"} {
		if l, err := at.Notifications(t.Context(), api.NotificationQuery{Run: run}); err != nil || l.Sinks[0].Name != "at "+name {
			t.Errorf("about run %s: %+v, %v", run, l, err)
		}
	}
	if _, err := at.Notifications(t.Context(), api.NotificationQuery{Run: "none"}); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("about a run that is not there: %v", err)
	}
	if l, err := (client.Service{API: h.api, Worker: "a"}).Notifications(t.Context(), api.NotificationQuery{Run: "theirs"}); err != nil || l.Sinks[0].Name != "at a" {
		t.Errorf("a worker is named: %+v, %v", l, err)
	}
	if status, body := h.posted("/v1/notifications/retry?run=theirs", `{"all":true}`); status != http.StatusOK {
		t.Errorf("retried: %d %s", status, body)
	}
	if got := fmt.Sprint(asked["a"](), asked["b"]()); got != `[GET /v1/notifications?run=ours GET /v1/notifications?run=theirs] [GET /v1/notifications?run=theirs POST /v1/notifications/retry {"all":true}]` {
		t.Error(got)
	}
}

// While workers may be on their way back, none of them is taken for the only one.
func TestAHubThatHasJustStartedTakesNoWorkerForTheOnlyOne(t *testing.T) {
	h := newHouse(t)
	h.shut()
	h.grace = 1 << 40
	h.open()
	a := newDesk(h, "a")
	asked := a.remembering()
	a.arrive()
	h.await(1)
	if _, err := (client.Service{API: h.api}).Scopes(t.Context()); !errors.Is(err, protocol.ErrWorkerAway) {
		t.Errorf("%v", err)
	}
	if _, err := (client.Service{API: h.api, Worker: "a"}).Scopes(t.Context()); err != nil || len(asked()) != 1 {
		t.Errorf("asked %q, %v", asked(), err)
	}
}

// A token that reads changes nothing, at the hub already; it may search.
func TestAReaderDoesNotChangeMemories(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a")
	a.remembering()
	a.arrive()
	h.await(1)
	h.shut()
	h.wrap = func(next http.Handler) http.Handler {
		reader := served(guard.Identity{Name: "bob", Scopes: []guard.Scope{guard.Read}}, next)
		everybody := served(everyone, next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/memories") {
				reader.ServeHTTP(w, r)
				return
			}
			everybody.ServeHTTP(w, r)
		})
	}
	h.open()
	h.await(1)
	service := client.Service{API: h.api, Worker: "a"}
	if _, err := service.Recall(t.Context(), api.Recall{Text: "x"}); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func() error{
		"remember": func() error { _, err := service.Remember(t.Context(), api.Remember{}); return err },
		"change":   func() error { _, err := service.ChangeMemories(t.Context(), api.MemoryChanges{}); return err },
		"reindex":  func() error { _, err := service.Reindex(t.Context(), api.Reindex{}, nil); return err },
	} {
		if err := change(); !errors.Is(err, protocol.ErrForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
