package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/internal/lately"
	"wf/hub/lists"
	"wf/hub/queue"
	"wf/hub/server"
	"wf/protocol"
)

// Hub is the server that workers dial in to. The fields are set once, before Handler; zero
// times have their defaults.
type Hub struct {
	Queue    queue.Queue
	Registry queue.Registry
	Pointers queue.Pointers

	Name    string
	Version string
	Page    http.Handler // everything that is not the API; nil is nothing
	// NamesWorker reports whether credentials exist that are bound to a worker id: others cannot
	// register it. nil is for a hub without such credentials.
	NamesWorker func(id string) bool
	// MadeBy reports whether a run is the one that a request id makes at a worker. A worker that names another
	// run for a request is not believed.
	MadeBy func(request string, run protocol.RunID) bool
	// DigestKey is that of the digests of requests, which outlives the process; nil is one that does not.
	DigestKey []byte
	// NewCode makes a one-time code for a browser of the client whose request the context is of (guard.Of); nil
	// where nothing listens for one.
	NewCode func(context.Context) (api.Code, error)
	Log     *slog.Logger // nil discards it
	Metrics http.Handler // GET /metrics; nil is none
	// Ready is nil where the queue can be read; the hub itself knows whether it is closed. nil is always.
	Ready func(context.Context) error

	Heartbeat time.Duration // of workers; default 5 s
	TTL       time.Duration // after which a silent worker is cut off; default 3 heartbeats
	Lease     time.Duration // of a job; default 30 s
	Starting  time.Duration // a worker may take to start a job; default 2 min
	Asking    time.Duration // a worker may take to answer for a list; default 2 s
	Holding   time.Duration // a submission is answered after, if the job has not begun; default 20 s
	Patience  time.Duration // a client may take for one piece of an answer or a stream; default 10 s
	// GracePeriod is how long after its start the hub waits for workers before it says of anything
	// that it does not exist; default twice LongestWait.
	GracePeriod time.Duration

	once       sync.Once
	self       http.Handler  // what it answers as a worker does
	graceOver  chan struct{} // closed at the end of the grace period
	graceTimer *time.Timer
	work       sync.WaitGroup // handlers of links and what they started

	mu       sync.Mutex
	links    map[string]*link
	requests map[string]claimed // by request id
	changed  chan struct{}      // closed when a request is added, or a worker says what it has
	settling map[string]bool    // jobs of which it is being recorded that they have begun
	sockets  map[*socket]bool
	closed   bool

	places guard.Places // of sockets of clients

	lists *lists.Board
	news  chan struct{} // has one when the lists of the hub itself may have changed

	refused lately.Map[string, *answer] // what workers refused jobs with, by job
	reaper  *time.Timer                 // forgets the keys of workers that are forgotten
}

// claimed is what became of a request.
type claimed struct {
	worker string
	run    protocol.RunID
}

// learn remembers what became of a request.
func (h *Hub) learn(request string, c claimed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.requests[request] == c {
		return
	}
	h.requests[request] = c
	h.wake()
}

// wake wakes the submissions that wait for workers; the caller holds mu.
func (h *Hub) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// woken is closed at the next wake.
func (h *Hub) woken() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// reapEvery is how often the keys of workers that are forgotten are looked for, and maxRefusals are how many refusals are
// kept.
const (
	reapEvery   = time.Hour
	maxRefusals = 1000
)

// reap takes the keys of workers away that the registry has forgotten.
func (h *Hub) reap() {
	if !h.begin() {
		return
	}
	defer h.work.Done()
	if err := h.forgetKeys(context.Background()); err != nil && !errors.Is(err, queue.ErrClosed) {
		h.Log.Error("keys of workers that are forgotten", "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.reaper.Reset(reapEvery)
	}
}

func (h *Hub) forgetKeys(ctx context.Context) error {
	jobs, err := h.Queue.List(ctx) // first: whatever has a key in them was known before
	if err != nil {
		return err
	}
	known, err := h.Registry.List(ctx)
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, e := range jobs {
		for _, k := range e.Keys {
			gone[k.Worker] = true
		}
	}
	for _, a := range known {
		delete(gone, a.ID)
	}
	for id := range gone {
		if err := h.Queue.Forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Stats are counts of the queue.
func (h *Hub) Stats(ctx context.Context) (queue.Stats, error) { return h.Queue.Stats(ctx) }

func (h *Hub) start() {
	h.once.Do(func() {
		h.Heartbeat = cmp.Or(h.Heartbeat, 5*time.Second)
		h.TTL = cmp.Or(h.TTL, 3*h.Heartbeat)
		h.Lease = cmp.Or(h.Lease, 30*time.Second)
		h.Starting = cmp.Or(h.Starting, 2*time.Minute)
		h.Asking = cmp.Or(h.Asking, 2*time.Second)
		h.Holding = cmp.Or(h.Holding, 20*time.Second)
		h.Patience = cmp.Or(h.Patience, 10*time.Second)
		h.GracePeriod = cmp.Or(h.GracePeriod, 2*LongestWait)
		h.Log = cmp.Or(h.Log, discard)
		h.self = (&server.Server{Kind: "hub", Name: h.Name, Version: h.Version, NewCode: h.NewCode, Page: h.Page, Describe: OpenAPI, Metrics: h.Metrics, Ready: h.ready, Log: h.Log}).Handler()
		h.refused.Max = maxRefusals
		h.places = guard.PlacesOfStreams(maxSockets)
		if h.DigestKey == nil {
			h.DigestKey = []byte(rand.Text())
		}
		h.lists, h.news = h.newLists(), make(chan struct{}, 1)
		h.links, h.requests, h.settling, h.sockets = map[string]*link{}, map[string]claimed{}, map[string]bool{}, map[*socket]bool{}
		h.graceOver, h.changed = make(chan struct{}), make(chan struct{})
		h.graceTimer = time.AfterFunc(h.GracePeriod, func() {
			close(h.graceOver)
			for _, l := range h.all() {
				l.restart() // jobs that may have been started before
			}
		})
		h.reaper = time.AfterFunc(h.GracePeriod+reapEvery, h.reap)
	})
}

// inGracePeriod reports whether workers that the hub does not know may still connect.
func (h *Hub) inGracePeriod() bool {
	select {
	case <-h.graceOver:
		return false
	default:
		return true
	}
}

// Close cuts the links to all workers and waits until nothing of them is left. Requests that
// are open end; new ones are answered with shutting_down.
func (h *Hub) Close() {
	h.start()
	h.graceTimer.Stop()
	h.reaper.Stop()
	h.mu.Lock()
	h.closed = true
	links, sockets := h.links, h.sockets
	h.links, h.sockets = map[string]*link{}, nil
	h.mu.Unlock()
	for k := range sockets {
		k.Fail(protocol.ErrShuttingDown)
	}
	for _, l := range links {
		l.close(protocol.ErrShuttingDown)
	}
	h.work.Wait()
	h.lists.Close()
}

// ready is nil while the hub takes requests, also of workers that it waits for.
func (h *Hub) ready(ctx context.Context) error {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	switch {
	case closed:
		return protocol.ErrShuttingDown
	case h.Ready != nil:
		return h.Ready(ctx)
	}
	return nil
}

// link is the connection of a worker, nil if there is none.
func (h *Hub) link(worker string) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[worker]
}

// enter counts a socket in; false says that the hub is closed.
func (h *Hub) enter(k *socket) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.sockets[k] = true
	return true
}

func (h *Hub) leave(k *socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sockets, k)
}

// maxSockets of clients at once.
const maxSockets = 4 * protocol.MaxSockets

// all are the links of now, in no order.
func (h *Hub) all() []*link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.links))
}
