package relay_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"wf/hub/guard"
	"wf/hub/lists"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/protocol"
)

// telling has a desk tell of its lists: of runs which moved, of the others nothing but that they are watched. It counts how often it is asked.
func (d *desk) telling() (asked *atomic.Int32) {
	asked = new(atomic.Int32)
	d.before = func(r *http.Request) {
		if r.URL.Path == "/v1/replay" {
			asked.Add(1)
		}
	}
	rest := []protocol.List{protocol.ListWorkflows, protocol.ListTables, protocol.ListNotifications, protocol.ListDeletions}
	d.live.Lists = &lists.Board{Of: append(rest, protocol.ListRuns), Source: func(ctx context.Context, b *lists.Board) {
		seen := map[string]protocol.Link{}
		for first := true; ctx.Err() == nil; first = false {
			at, err := d.store.Changes(ctx)
			if err != nil {
				d.Error(err)
				return
			}
			for _, h := range must(d.store.Heads(context.Background(), "run/"))(d) {
				if seen[h.Name] != h.Link && !first {
					b.Moved(protocol.ListRuns, protocol.RunOf(h.Name))
				}
				seen[h.Name] = h.Link
			}
			if first {
				b.All(append(rest, protocol.ListRuns)...)
			}
			_, _ = d.store.AwaitChange(ctx, at)
		}
	}}
	return asked
}

// heard reads frames of a list_request until one is wanted.
func (w *wire) heard(ok func(protocol.Frame) bool) {
	w.Helper()
	for {
		_, b, err := w.conn.Read(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		f := must(protocol.ParseFrame(w.codec, b))(w)
		if f.Type != protocol.FrameListChanged {
			w.Fatalf("%+v", f)
		}
		if ok(f) {
			return
		}
	}
}

func names(run protocol.RunID) func(protocol.Frame) bool {
	return func(f protocol.Frame) bool { return f.List == protocol.ListRuns && slices.Contains(f.Runs, run) }
}

// allOf is satisfied once each of the lists may be another.
func allOf(left ...protocol.List) func(protocol.Frame) bool {
	left = slices.Clone(left)
	return func(f protocol.Frame) bool {
		if f.All {
			left = slices.DeleteFunc(left, func(l protocol.List) bool { return l == f.List })
		}
		return len(left) == 0
	}
}

var hubLists = []protocol.List{protocol.ListAgents, protocol.ListQueue, protocol.ListRuns, protocol.ListWorkflows, protocol.ListTables, protocol.ListNotifications, protocol.ListDeletions}

func TestAHubTellsOfTheListsOfItsWorkers(t *testing.T) {
	h := newHouse(t)
	a, b := newDesk(h, "a"), newDesk(h, "b")
	asked := a.telling()
	b.telling()
	a.arrive()
	b.arrive()
	h.await(2)
	json, cbor := h.dial(protocol.JSONFrames), h.dial(protocol.CBORFrames)
	for _, w := range []*wire{json, cbor} {
		w.send(protocol.Request{Type: protocol.FrameListRequest, ID: "l", Lists: hubLists})
		w.heard(allOf(hubLists...))
	}
	// Either worker is heard, by both clients, as soon as it is subscribed to: before that anything may have moved.
	for d, run := range map[*desk]protocol.RunID{a: "run-a", b: "run-b"} {
		d.say(run, "one")
		for _, w := range []*wire{json, cbor} {
			w.heard(func(f protocol.Frame) bool { return names(run)(f) || allOf(protocol.ListRuns)(f) })
		}
	}
	h.pointed("run-b", func(p queue.Pointer) bool { return p.Worker == "b" })
	b.say("run-b", "two")
	json.heard(names("run-b"))
	cbor.heard(names("run-b"))
	if n := asked.Load(); n != 1 {
		t.Errorf("the worker was asked %d times for two clients", n)
	}

	// A worker is cut off and comes back.
	b.die()
	json.heard(allOf(protocol.ListAgents, protocol.ListRuns))
	a.say("run-a", "two") // the others do not notice
	json.heard(names("run-a"))
	h.await(1)
	b.arrive()
	h.await(2)
	json.heard(allOf(protocol.ListAgents))

	// What the hub itself does.
	c := newDesk(h, "c", "fix").met(h)
	c.telling()
	started := make(chan error, 1)
	go func() {
		_, err := h.submit("fix", "job")
		started <- err
	}()
	json.heard(allOf(protocol.ListQueue))
	h.queued(1)
	c.arrive()
	if err := <-started; err != nil {
		t.Error(err)
	}
	json.heard(allOf(protocol.ListQueue))

	json.send(protocol.Request{Type: protocol.FrameListRequest, ID: "m", Lists: []protocol.List{"of tomorrow"}})
	for {
		if got := json.tells(); got == "m error bad_request" {
			break
		} else if !strings.HasSuffix(got, "list_changed") {
			t.Fatal(got)
		}
	}
}

// A worker that does not know the request is asked for its lists, by the hub and not by each client.
func TestAHubAsksAWorkerThatTellsNothing(t *testing.T) {
	h := newHouse(t)
	old := newDesk(h, "old")
	var asked atomic.Int32
	old.before = func(r *http.Request) {
		if r.URL.Path == "/v1/runs" {
			asked.Add(1)
		}
	}
	old.say("run", "one")
	old.arrive()
	h.await(1)
	w := h.dial(protocol.JSONFrames)
	w.send(protocol.Request{Type: protocol.FrameListRequest, ID: "l", Lists: []protocol.List{protocol.ListRuns}})
	w.heard(allOf(protocol.ListRuns)) // of the hub
	w.heard(allOf(protocol.ListRuns)) // it was asked first
	before := asked.Load()
	old.say("run", "two")
	w.heard(allOf(protocol.ListRuns))
	if n := asked.Load(); n == before {
		t.Error("the hub told what it had not asked for")
	}
}

// A client may be told of lists where it may read them.
func TestAHubTellsOnlyThoseThatMayRead(t *testing.T) {
	scopes := relay.Routes()
	for _, list := range hubLists {
		if got := scopes["GET /v1/"+string(list)]; got != scopes["GET /v1/replay"] || got != string(guard.Read) {
			t.Errorf("%s wants the scope %q, the socket that tells of it %q", list, got, scopes["GET /v1/replay"])
		}
	}
	h := newHouse(t)
	h.shut()
	h.wrap = func(next http.Handler) http.Handler {
		return served(guard.Identity{Name: "bob", Scopes: []guard.Scope{guard.Run, guard.Admin}}, next)
	}
	h.open()
	_, res, err := websocket.Dial(t.Context(), "ws://"+h.addr+"/v1/replay", &websocket.DialOptions{HTTPClient: h.api.HTTP(), Subprotocols: []string{protocol.FramesJSON}})
	if err == nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("%v, %v", res, err)
	}
}
