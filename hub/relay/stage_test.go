package relay_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"wf/api"
	"wf/cas"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/queue/database"
	"wf/hub/queue/embedded"
	"wf/hub/queue/line"
	"wf/hub/relay"
	"wf/hub/replay"
	"wf/hub/reply"
	"wf/hub/seal"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests{M: m}) }

// everyone may do everything.
var everyone = guard.Identity{Name: "ada", Scopes: append(slices.Clone(guard.AllScopes), guard.Worker)}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// log shows what hubs and workers say, if the test fails.
func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// A house is a hub on loopback that can be restarted at its address.
type house struct {
	testing.TB
	hub    *relay.Hub
	dir    string // of its disk
	addr   string
	dsn    string       // of a database that it shares; "" is its disk
	ends   func() error // closes either
	kept   *kept
	server *http.Server
	api    *client.API
	wrap   func(http.Handler) http.Handler

	grace, heartbeat time.Duration
}

func newHouse(t testing.TB) *house { return newHouseIn(t, "") }

// newHouseIn is a hub whose queue is in a database, "" for one of its own.
func newHouseIn(t testing.TB, dsn string) *house {
	h := &house{TB: t, dsn: dsn, dir: t.TempDir(), addr: "127.0.0.1:0", grace: 100 * time.Millisecond, wrap: func(next http.Handler) http.Handler { return served(everyone, next) }}
	if dsn != "" {
		h.heartbeat = 50 * time.Millisecond
	}
	h.open()
	t.Cleanup(h.shut)
	return h
}

// open starts the hub over what its disk holds.
func (h *house) open() {
	h.Helper()
	h.kept = &kept{changed: make(chan struct{})}
	var q *line.Queue
	if h.dsn == "" {
		s := must(embedded.Open(filepath.Join(h.dir, "hub.db")))(h)
		q, h.kept.Registry, h.kept.Pointers, h.ends = s.Queue, s.Registry, s.Pointers, s.Close
	} else {
		s := must(database.Open(h.Context(), h.dsn, database.Options{}))(h)
		q, h.kept.Registry, h.kept.Pointers, h.ends = s.Queue, s.Registry, s.Pointers, s.Close
	}
	h.hub = &relay.Hub{Queue: keptQueue{q, h.kept}, Heartbeat: h.heartbeat, Registry: h.kept, Pointers: h.kept, Name: "hub", Version: "1", Log: logger(h), DigestKey: []byte("of the tests"),
		TTL: time.Minute, Asking: time.Minute, Holding: time.Minute, GracePeriod: h.grace} // nothing of it passes by itself
	l, err := net.Listen("tcp", h.addr)
	for errors.Is(err, syscall.EADDRINUSE) && h.Context().Err() == nil {
		time.Sleep(10 * time.Millisecond) // a client on its way out has the port: the system does not tell when it is free
		l, err = net.Listen("tcp", h.addr)
	}
	if err != nil {
		h.Fatal(err)
	}
	h.addr = l.Addr().String()
	h.server = guard.Server(h.wrap(h.hub.Handler()), nil)
	served := h.server
	go func() { _ = served.Serve(l) }()
	h.api = must(client.New("http://"+h.addr, client.Options{}))(h)
}

// shut ends the hub as abruptly as a process can end itself.
func (h *house) shut() {
	h.Helper()
	if h.server == nil {
		return
	}
	err := h.server.Close()
	h.hub.Close()
	h.api.Close()
	if err := errors.Join(err, h.ends()); err != nil {
		h.Error(err)
	}
	h.server = nil
}

// kept is the registry and the pointers of a hub, and says when it changed them.
type kept struct {
	queue.Registry
	queue.Pointers

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

func (k *kept) change() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *kept) Announce(ctx context.Context, a queue.Worker, ttl time.Duration) (bool, error) {
	defer k.change()
	return k.Registry.Announce(ctx, a, ttl)
}

func (k *kept) Withdraw(ctx context.Context, id string) error {
	defer k.change()
	return k.Registry.Withdraw(ctx, id)
}

func (k *kept) Swap(ctx context.Context, p queue.Pointer) (queue.Pointer, error) {
	defer k.change()
	return k.Pointers.Swap(ctx, p)
}

// keptQueue is the queue of a hub, and says when a job was submitted or leased, or has another key.
type keptQueue struct {
	queue.Queue
	kept *kept
}

func (k keptQueue) Submit(ctx context.Context, j queue.Job, s queue.Sealed) (queue.Entry, bool, error) {
	defer k.kept.change()
	return k.Queue.Submit(ctx, j, s)
}

func (k keptQueue) Share(ctx context.Context, id string, key queue.Key) error {
	defer k.kept.change()
	return k.Queue.Share(ctx, id, key)
}

func (k keptQueue) Lease(ctx context.Context, worker string, fits func(queue.Entry) bool, ttl time.Duration) (queue.Lease, error) {
	defer k.kept.change()
	return k.Queue.Lease(ctx, worker, fits, ttl)
}

// until waits until a change of the registry, a pointer or the queue has made ok true.
func (h *house) until(ok func() bool) {
	h.Helper()
	for {
		h.kept.mu.Lock()
		changed := h.kept.changed
		h.kept.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-h.Context().Done():
			h.Fatal(h.Context().Err())
		}
	}
}

// await waits until so many workers are connected.
func (h *house) await(n int) {
	h.Helper()
	h.until(func() bool {
		live := 0
		for _, a := range must(h.kept.List(h.Context()))(h) {
			if a.Live {
				live++
			}
		}
		return live == n
	})
}

// pointed waits until the pointer of a run is as wanted.
func (h *house) pointed(run protocol.RunID, ok func(queue.Pointer) bool) {
	h.Helper()
	h.until(func() bool {
		p, err := h.kept.Get(h.Context(), run)
		if err != nil && !errors.Is(err, protocol.ErrUnknownRun) && !errors.Is(err, protocol.ErrUnreachable) {
			h.Fatal(err)
		}
		return err == nil && ok(p)
	})
}

// get reads a path of the hub as JSON.
func (h *house) get(path string, into any) int {
	h.Helper()
	res := must(h.api.HTTP().Get("http://" + h.addr + path))(h)
	defer res.Body.Close()
	b := must(io.ReadAll(res.Body))(h)
	if err := json.Unmarshal(b, into); err != nil {
		h.Fatalf("%s: %v: %s", path, err, b)
	}
	return res.StatusCode
}

// A desk is a worker with a real store and a small stand-in for the daemon: a run is its
// first event, named after the request.
type desk struct {
	testing.TB
	house  *house
	worker relay.Worker
	store  *cas.Store
	live   *replay.Server
	cancel context.CancelFunc
	gone   chan struct{}

	mu      sync.Mutex
	started []string            // request ids of runs that it did not have, in the order in which they came
	onStart func(string) error  // is asked before a run begins
	before  func(*http.Request) // sees every request
	moved   []protocol.RunID
}

func newDesk(h *house, id string, caps ...string) *desk {
	d := &desk{TB: h.TB, house: h, store: must(cas.Open(context.Background(), h.TempDir(), cas.Options{}))(h)}
	d.live = &replay.Server{Feed: d.store}
	d.worker = relay.Worker{Hub: "http://" + h.addr, ID: id, Name: "desk " + id, Version: "1", Store: &shelf{Store: d.store, caps: caps},
		Debounce: 10 * time.Millisecond, Identity: must(seal.NewIdentity())(h), Log: logger(h), Moved: func(run protocol.RunID, _ string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.moved = append(d.moved, run)
		}}
	d.worker.Handler = d.handler()
	h.Cleanup(func() {
		d.leave()
		if err := errors.Join(d.live.Close(), d.store.Close()); err != nil {
			h.Error(err)
		}
	})
	return d
}

// met has the hub know the worker, which is away.
func (d *desk) met(h *house) *desk {
	d.Helper()
	w := queue.Worker{ID: d.worker.ID, Name: d.worker.Name, Caps: slices.Sorted(slices.Values(must(d.worker.Store.Caps(h.Context()))(d))), Key: d.worker.Identity.Public()}
	_, err := h.kept.Announce(h.Context(), w, time.Minute)
	if err := errors.Join(err, h.kept.Withdraw(h.Context(), w.ID)); err != nil {
		d.Fatal(err)
	}
	return d
}

// arrive connects the worker. The hub knows it from then on, so that what is submitted waits for it.
func (d *desk) arrive() *desk {
	d.Helper()
	if h := d.house; h.server != nil {
		known := must(h.kept.List(h.Context()))(d)
		if !slices.ContainsFunc(known, func(a queue.Worker) bool { return a.ID == d.worker.ID }) {
			d.met(h)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	d.cancel, d.gone = cancel, gone
	go func() {
		defer close(gone)
		if err := d.worker.Serve(ctx); err != nil {
			d.Error(err)
		}
	}()
	return d
}

// leave ends the worker's process, as far as the hub can tell.
func (d *desk) leave() {
	if d.cancel != nil {
		d.cancel()
		<-d.gone
		d.cancel = nil
	}
}

// die cuts the worker off in the middle of a request: its answer is heard by nobody.
func (d *desk) die() {
	gone := d.gone
	d.cancel()
	<-gone
}

func (d *desk) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/replay", d.live.WebSocket())
	mux.Handle("GET /v1/sessions/{id}/events", d.live.Events())
	mux.HandleFunc("POST /v1/runs", d.start)
	mux.HandleFunc("GET /v1/runs", d.runs)
	mux.HandleFunc("GET /v1/workflows", func(w http.ResponseWriter, r *http.Request) {
		items := []map[string]any{}
		for _, c := range d.worker.Store.(*shelf).caps {
			items = append(items, map[string]any{"name": c, "description": "", "file": "/" + c, "inputs": map[string]any{}, "schedule": nil, "problem": ""})
		}
		reply.JSON(w, 200, map[string]any{"schema": "wf.workflows/v1", "items": items})
	})
	mux.HandleFunc("GET /v1/runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		head, seq, err := d.store.Tip(r.Context(), protocol.RunID(r.PathValue("id")))
		if err != nil {
			reply.Error(w, err)
			return
		}
		w.Header().Set("X-Scopes", fmt.Sprint(must(identity(r))(d).Scopes))
		reply.JSON(w, 200, map[string]any{"schema": "wf.run/v1", "id": r.PathValue("id"), "head": head.String(), "seq": seq, "desk": d.worker.ID})
	})
	mux.HandleFunc("POST /v1/runs/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		reply.JSON(w, 200, map[string]any{"schema": "wf.accepted/v1", "id": r.PathValue("id"), "step": nil})
	})
	mux.HandleFunc("GET /v1/blocks/{cid}", func(w http.ResponseWriter, r *http.Request) {
		l, err := protocol.ParseLink(r.PathValue("cid"))
		if err == nil {
			var b []byte
			if b, err = d.store.Block(r.Context(), l); err == nil {
				reply.Bytes(w, 200, "application/vnd.ipld.raw", b)
				return
			}
		}
		reply.Error(w, err)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.before != nil {
			d.before(r)
		}
		mux.ServeHTTP(w, r)
	})
}

func identity(r *http.Request) (guard.Identity, error) {
	id, ok := guard.Of(r.Context())
	if !ok {
		return id, errors.New("a request without an identity")
	}
	return id, nil
}

func (d *desk) start(w http.ResponseWriter, r *http.Request) {
	var s api.Start
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		reply.Error(w, reply.BodyError(err))
		return
	}
	run := protocol.RunID("R-" + s.RequestID)
	if _, _, err := d.store.Tip(r.Context(), run); err == nil {
		reply.JSON(w, 200, map[string]any{"schema": "wf.started/v1", "id": run, "fresh": false})
		return
	}
	d.mu.Lock()
	d.started = append(d.started, s.RequestID)
	ask := d.onStart
	d.mu.Unlock()
	if ask != nil {
		if err := ask(s.RequestID); err != nil {
			reply.Error(w, err)
			return
		}
	}
	d.say(run, string(s.Inputs["topic"]))
	reply.JSON(w, 201, map[string]any{"schema": "wf.started/v1", "id": run, "fresh": true})
}

// say appends events to a run.
func (d *desk) say(run protocol.RunID, texts ...string) []protocol.Entry {
	d.Helper()
	j := must(d.store.Journal(context.Background(), run))(d)
	drafts := make([]cas.Draft, len(texts))
	for i, text := range texts {
		drafts[i] = cas.Draft{Step: "coder#1", Data: protocol.TextSaid{Content: protocol.NewText(text)}}
	}
	return must(j.Append(context.Background(), time.Now().UnixMicro(), drafts, nil))(d)
}

func (d *desk) runs(w http.ResponseWriter, r *http.Request) {
	heads := must(d.store.Heads(context.Background(), "run/"))(d)
	slices.SortFunc(heads, func(a, b cas.Head) int { return cmp.Or(cmp.Compare(b.TS, a.TS), strings.Compare(a.Name, b.Name)) })
	items, skip := []map[string]any{}, r.URL.Query().Get("before")
	var limit int
	if _, err := fmt.Sscan(r.URL.Query().Get("limit"), &limit); err != nil {
		limit = 50
	}
	for _, head := range heads {
		id := strings.TrimPrefix(head.Name, "run/")
		if skip != "" {
			updated := time.UnixMicro(head.TS).UTC().Format("2006-01-02T15:04:05.000000Z")
			if at, run, ok := api.ReadRowPlace(skip); !ok || updated > at || updated == at && id <= string(run) {
				continue
			}
		}
		if len(items) < limit {
			items = append(items, map[string]any{"id": id, "updated": time.UnixMicro(head.TS).UTC().Format("2006-01-02T15:04:05.000000Z")})
		}
	}
	reply.JSON(w, 200, map[string]any{"schema": "wf.runs/v1", "items": items, "next": nil})
}

func (d *desk) begun() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.started)
}

// shelf is the store as the hub is told of it.
type shelf struct {
	*cas.Store
	caps    []string
	foreign bool // its runs came from elsewhere, but for mark
	silent  bool // of the requests of its runs
}

func (s *shelf) Caps(context.Context) ([]string, error) { return s.caps, nil }

func (s *shelf) Runs(ctx context.Context) ([]relay.Run, error) {
	heads, err := s.Heads(ctx, "run/")
	var out []relay.Run
	for _, h := range heads {
		id := strings.TrimPrefix(h.Name, "run/")
		request, _ := strings.CutPrefix(id, "R-")
		if request == id || s.silent {
			request = ""
		}
		r := relay.Run{ID: protocol.RunID(id), HeadSeq: h.Seq, HeadCID: h.Link.String(), RequestID: request}
		if s.foreign && id != "mark" {
			r.Foreign, r.RequestID = true, ""
		}
		out = append(out, r)
	}
	return out, err
}

// texts is the JSON of n jobs' inputs.
func topic(text string) map[string]json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return map[string]json.RawMessage{"topic": b}
}

// contains looks for a text in all files below a directory.
func contains(t testing.TB, dir, text string) []string {
	t.Helper()
	var found []string
	for _, path := range must(filepath.Glob(filepath.Join(dir, "*")))(t) {
		b := must(readFile(path))(t)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
	}
	return found
}

// served is a handler with every request let in as one identity.
func served(id guard.Identity, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(guard.With(r.Context(), id)))
	})
}
