package relay_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/protocol"
)

func readFile(path string) ([]byte, error) { return os.ReadFile(path) }

type list struct {
	Items   []map[string]any
	Next    string
	Missing []string
	Code    string
}

func (l list) column(name string) []string {
	out := []string{}
	for _, i := range l.Items {
		out = append(out, fmt.Sprint(i[name]))
	}
	return out
}

func TestWorkersAreListed(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a", "review", "fix").arrive()
	newDesk(h, "b").arrive()
	h.await(2)
	var got list
	h.get("/v1/agents", &got)
	if d := cmp.Diff([]string{"desk a", "desk b"}, got.column("name")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]any{"fix", "review"}, got.Items[0]["caps"]); d != "" {
		t.Error(d)
	}
	a.leave()
	h.await(1)
	h.get("/v1/agents", &got)
	if got.Items[0]["connected"] != false || got.Items[1]["connected"] != true {
		t.Errorf("have %v", got.Items)
	}
	var info struct{ Kind string }
	if h.get("/v1/info", &info); info.Kind != "hub" {
		t.Errorf("kind %q", info.Kind)
	}
}

func TestTheRunsOfAllWorkersAreOneList(t *testing.T) {
	h := newHouse(t)
	a, b := newDesk(h, "a", "fix", "shared"), newDesk(h, "b", "shared")
	var want []string
	for i := range 7 {
		d := []*desk{a, b, b}[i%3]
		id := fmt.Sprint("run", i)
		d.say(protocol.RunID(id), "x")
		want = append([]string{id}, want...)
	}
	a.arrive()
	b.arrive()
	h.await(2)
	for _, limit := range []int{1, 2, 3, 7, 50} {
		var ids, workers []string
		for pages, next := 0, ""; pages == 0 || next != ""; pages++ {
			var got list
			if h.get(fmt.Sprintf("/v1/runs?limit=%d&before=%s", limit, next), &got); len(got.Items) > limit || pages > 10 {
				t.Fatalf("limit %d: page %d has %d items", limit, pages, len(got.Items))
			}
			ids, workers, next = append(ids, got.column("id")...), append(workers, got.column("agent")...), got.Next
		}
		if d := cmp.Diff(want, ids); d != "" {
			t.Errorf("limit %d: %s", limit, d)
		}
		if d := cmp.Diff([]string{"a", "b", "b", "a", "b", "b", "a"}, workers); d != "" {
			t.Errorf("limit %d: %s", limit, d)
		}
	}
	var flows list
	h.get("/v1/workflows", &flows)
	if d := cmp.Diff([]string{"fix", "shared"}, flows.column("name")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"[a]", "[a b]"}, flows.column("agents")); d != "" {
		t.Error(d)
	}
	for what, query := range map[string]string{"a cursor of nowhere": "before=xyz", "no status": "status=odd", "no parameter": "statsu=done", "no number": "limit=0"} {
		var bad list
		if status := h.get("/v1/runs?"+query, &bad); status != 400 || bad.Code != "bad_request" {
			t.Errorf("%s: %d %s", what, status, bad.Code)
		}
	}
	h.until(func() bool { // all of them were heard
		list := must(h.kept.List(t.Context()))(t)
		return list[0].ID == "a" && list[0].Runs == 3
	})
	a.leave()
	h.await(1)
	var rest list
	h.get("/v1/runs", &rest)
	if d := cmp.Diff([]string{"a"}, rest.Missing); d != "" || len(rest.Items) != 4 {
		t.Errorf("a worker that is away: %d runs; %s", len(rest.Items), d)
	}
}

// A worker that takes requests and does not answer is named, and the others are listed.
func TestAStalledWorkerDoesNotHoldUpTheList(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hub.Asking = 2 * time.Second // the other one has to answer in it
	a, b := newDesk(h, "a"), newDesk(h, "b")
	stop := make(chan struct{})
	defer close(stop)
	a.before = func(*http.Request) {
		<-stop
		panic(http.ErrAbortHandler) // no answer, also when the test ends
	}
	b.say("run1", "x")
	a.arrive()
	b.arrive()
	h.await(2)
	var got list
	h.get("/v1/runs", &got)
	if d := cmp.Diff([]string{"run1"}, got.column("id")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a"}, got.Missing); d != "" {
		t.Error(d)
	}
}

func TestARequestGoesToTheWorkerThatHasTheRun(t *testing.T) {
	h := newHouse(t)
	a, b := newDesk(h, "a").arrive(), newDesk(h, "b").arrive()
	entries := b.say("run1", "x", "y")
	seen := make(chan http.Header, 10)
	b.before = func(r *http.Request) {
		if r.Method == http.MethodPost {
			seen <- r.Header.Clone()
		}
	}
	h.await(2)
	var got struct{ Desk, Head, Code string }
	h.get("/v1/runs/run1", &got)
	if got.Desk != "b" || got.Head != entries[1].CID.String() {
		t.Errorf("have %+v", got)
	}
	req := must(http.NewRequest("POST", "http://"+h.addr+"/v1/runs/run1/cancel", strings.NewReader("{}")))(t)
	req.Header = http.Header{"Authorization": {"Bearer secret"}, "Cookie": {"wf_session=1"}, "Content-Type": {"application/json"},
		"Wf-Scopes": {"admin"}, "Wf-By": {"mallory"}, "Wf-Job": {"j"}, "Wf-Epoch": {"1"}}
	res := must(h.api.HTTP().Do(req))(t)
	res.Body.Close()
	head := <-seen
	for _, name := range []string{"Authorization", "Cookie", "Wf-Scopes", "Wf-By", "Wf-Job", "Wf-Epoch"} {
		if v := head.Get(name); v != "" {
			t.Errorf("the worker was sent %s: %s", name, v)
		}
	}
	if status := h.get("/v1/runs/unknown", &got); status != 503 && status != 404 {
		t.Errorf("an unknown run: %d", status)
	}
	<-relay.GraceOver(h.hub)
	if status := h.get("/v1/runs/unknown", &got); status != 404 || got.Code != protocol.ErrUnknownRun.Code {
		t.Errorf("an unknown run: %d %s", status, got.Code)
	}
	h.pointed("run1", func(p queue.Pointer) bool { return p.Worker == "b" })
	b.leave()
	h.await(1)
	if status := h.get("/v1/runs/run1", &got); status != 503 || got.Code != protocol.ErrWorkerAway.Code {
		t.Errorf("a run whose worker is away: %d %s", status, got.Code)
	}
	a.say("run2", "x")
	if status := h.get("/v1/runs/run2", &got); status != 200 || got.Desk != "a" {
		t.Errorf("a run that is new: %d %+v", status, got)
	}
	link := a.say("run3", "x")[0].CID
	block := must(h.api.Block(t.Context(), link))(t)
	if want := must(a.store.Block(t.Context(), link))(t); !slices.Equal(block, want) {
		t.Errorf("block %s has %d bytes, want %d", link, len(block), len(want))
	}
	if _, err := h.api.Block(t.Context(), entries[0].CID); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("a block of a worker that is away: %v", err)
	}
}

// What a client may do is decided at the hub, and a worker may allow less.
func TestScopesHoldThroughTheHub(t *testing.T) {
	h := newHouse(t)
	h.shut()
	keys := must(guard.OpenKeys(h.dir+"/tokens", nil))(t)
	tokens := map[string]string{"agent": newToken(t, h.dir+"/tokens", "agent"), "read": newToken(t, h.dir+"/tokens", "read"), "run": newToken(t, h.dir+"/tokens", "run")}
	h.wrap = func(next http.Handler) http.Handler {
		return (&guard.Guard{Hosts: []string{h.addr}, Keys: keys}).Wrap(next)
	}
	h.open()
	a := newDesk(h, "a", "fix")
	a.worker.Token = func() (string, error) { return tokens["agent"], nil }
	a.worker.Scopes = []guard.Scope{guard.Read}
	a.say("run1", "x")
	a.arrive()
	h.await(1)
	for _, test := range []struct {
		token, what string
		want        *protocol.Error
	}{
		{"", "run", protocol.ErrUnauthorized},
		{"agent", "run", protocol.ErrForbidden},
		{"run", "run", protocol.ErrForbidden},
		{"read", "run", nil},
		{"read", "cancel", protocol.ErrForbidden},
		{"run", "cancel", nil},
	} {
		server := must(client.New("http://"+h.addr, client.Options{Token: tokens[test.token]}))(t)
		var err error
		if test.what == "run" {
			_, err = client.Service{API: server}.Run(t.Context(), "run1", api.Window{})
		} else {
			err = client.Service{API: server}.Cancel(t.Context(), "run1", "")
		}
		if test.want == nil && err != nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("token %q, %s: have %v, want %v", test.token, test.what, err, test.want)
		}
		server.Close()
	}
	for _, token := range []string{"read", "run", ""} {
		req := must(http.NewRequest("GET", "http://"+h.addr+relay.WorkerPath, nil))(t)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+tokens[token])
		}
		res := must(h.api.HTTP().Do(req))(t)
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusUnauthorized {
			t.Errorf("a worker with the token %q: %s", token, res.Status)
		}
	}
}

// newToken adds a token of one scope to a file.
func newToken(t *testing.T, path, scope string) string {
	t.Helper()
	token := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%-32s", "a token to test the scope "+scope)))
	f := must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	_, err := fmt.Fprintln(f, token, scope)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return token
}
