package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/yamux"

	"wf/hub/guard"
	"wf/hub/internal/socketend"
	"wf/hub/queue"
	"wf/hub/seal"
	"wf/protocol"
)

// ErrWorkerTaken refuses a worker with the id of another process.
var ErrWorkerTaken = &protocol.Error{Code: "agent_taken", Message: "another process is this worker", Hint: "stop that one, or give this one an id of its own"}

// link is one connected worker, at the hub.
type link struct {
	hub      *Hub
	bound    string // the only id that the credentials allow, or ""
	id, name string
	version  string
	instance string
	key      []byte // public; nil for a worker that opens no boxes
	keyName  string
	renewed  bool   // its process was started anew since it was connected last
	drained  bool   // as the registry said last
	renewal  uint64 // behind this epoch: earlier leases were of an earlier process
	lines    *lines
	tunnel   *yamux.Session
	via      *http.Transport        // speaks to the worker
	proxy    *httputil.ReverseProxy // passes requests on to it

	unrecorded map[protocol.RunID]Run // what it said while the database was away; of its reader alone

	ctx    context.Context // ends with the link; its cause says why
	cancel context.CancelCauseFunc

	mu           sync.Mutex
	caps         []string
	capacity     int
	busy         map[protocol.RunID]bool // that it drives
	begun        map[string]bool         // jobs that were given to it, and of which it has not spoken since
	asked        map[asking]bool         // keys that it was asked to pass on
	draining     bool
	runs         map[protocol.RunID]bool // those that the worker has; false for a foreign one
	leases       map[question]time.Time  // of jobs that are offered to it: until when
	failed       map[string]bool         // jobs that it did not start: others go first
	restartLease context.CancelFunc
	heard        time.Time
}

// maxWorkers that are connected at once.
const maxWorkers = 1024

// worker serves WorkerPath: it holds the link for as long as it lasts.
func (h *Hub) worker(w http.ResponseWriter, r *http.Request) error {
	if err := guard.Need(r.Context(), guard.Worker); err != nil {
		return err
	}
	if !socketend.Wanted(w, r, Subprotocol) {
		return nil
	}
	if !h.begin() {
		return protocol.ErrShuttingDown
	}
	defer h.work.Done()
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
	if err != nil {
		return nil // it has answered
	}
	defer c.CloseNow()
	if c.Subprotocol() != Subprotocol {
		return c.Close(websocket.StatusPolicyViolation, "want the subprotocol "+Subprotocol)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	client, _ := guard.Of(r.Context())
	l := &link{hub: h, bound: client.Worker, ctx: ctx, cancel: cancel, runs: map[protocol.RunID]bool{}, leases: map[question]time.Time{}, failed: map[string]bool{},
		busy: map[protocol.RunID]bool{}, begun: map[string]bool{}, asked: map[asking]bool{}, unrecorded: map[protocol.RunID]Run{}}
	if l.tunnel, err = newTunnel(ctx, c, true, h.Log); err != nil {
		return err
	}
	defer l.tunnel.Close()
	// A token that is taken away takes the link with it.
	defer context.AfterFunc(r.Context(), func() { l.close(context.Cause(r.Context())) })()
	if err := l.welcome(); err != nil {
		h.detach(l)
		h.Log.Warn("worker refused", "remote", guard.RemoteOf(r), "worker", l.id, "error", err)
		return nil
	}
	h.Log.Info("worker connected", "worker", l.id, "name", l.name, "remote", guard.RemoteOf(r))
	err = l.serve()
	h.detach(l)
	h.Log.Info("worker gone", "worker", l.id, "name", l.name, "why", err)
	return nil
}

// begin counts work that Close waits for; false says that the hub is closed.
func (h *Hub) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.work.Add(1)
	return true
}

// welcome takes the control stream and the worker's register.
func (l *link) welcome() error {
	ctx, cancel := context.WithTimeout(l.ctx, dialTime)
	defer cancel()
	stream, err := l.tunnel.AcceptStreamWithContext(ctx)
	if err != nil {
		return fmt.Errorf("no control stream: %w", err)
	}
	l.lines = newLines(stream)
	m, err := l.lines.next(dialTime)
	if err != nil {
		return err
	}
	if err := l.introduce(m); err != nil {
		return errors.Join(err, l.refuse(err))
	}
	l.via = &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return l.tunnel.Open() },
		DisableCompression: true, MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute,
		ExpectContinueTimeout: 2 * time.Second, // of an archive: a worker that does not take it says so before it is sent
	}
	l.proxy = l.newProxy()
	if err := l.hub.attach(l); err != nil {
		return errors.Join(err, l.refuse(err))
	}
	return l.lines.send(message{Type: msgRegistered, HeartbeatMS: l.hub.Heartbeat.Milliseconds(), TTLMS: l.hub.TTL.Milliseconds()})
}

// introduce reads the id and the name of the worker.
func (l *link) introduce(m message) error {
	switch {
	case m.Type != msgRegister:
		return fmt.Errorf("the first message is %.40q, register is wanted: %w", m.Type, protocol.ErrBadRequest)
	case m.Wire != wireVersion:
		return fmt.Errorf("version %d of the control stream, %d is spoken here; update the older wf: %w", m.Wire, wireVersion, protocol.ErrBadRequest)
	case m.Worker == "" || !queue.Plain(m.Worker, 128) || !queue.Plain(m.Name, 200) || !queue.Plain(m.Version, 200) || !queue.Plain(m.Instance, 128):
		return fmt.Errorf("the worker id, name or version is empty, too long or unprintable: %w", protocol.ErrBadRequest)
	}
	l.id, l.name, l.version, l.instance, l.capacity = m.Worker, m.Name, m.Version, m.Instance, max(0, m.Capacity)
	if len(m.Key) > 0 {
		if _, err := seal.For(m.Key, seal.Job{}, nil); err != nil {
			return err
		}
		l.key, l.keyName = m.Key, seal.Name(m.Key)
	}
	if err := l.mayBe(); err != nil {
		return err
	}
	return l.learn(m.Caps)
}

// mayBe is nil if the credentials of the link are good for its worker id: those that are bound to
// a worker for that one alone, others for every id that no credentials are bound to.
func (l *link) mayBe() error {
	switch {
	case l.bound == l.id:
		return nil
	case l.bound != "":
		return protocol.ErrForbidden.With("make a token for this worker at the hub: wf hub --new-agent ID", "the token is of the worker %s, and this is %s", l.bound, l.id)
	case l.hub.names(l.id):
		return protocol.ErrForbidden.With("give the token of that worker with --hub-token-file, or choose another id",
			"the worker %s has a token of its own at this hub, and this is another token", l.id)
	}
	return nil
}

// names reports whether credentials are bound to a worker.
func (h *Hub) names(worker string) bool { return h.NamesWorker != nil && h.NamesWorker(worker) }

// learn takes what the worker can start.
func (l *link) learn(caps []string) error {
	if len(caps) > maxCaps {
		return fmt.Errorf("%d workflows, %d at most: %w", len(caps), maxCaps, protocol.ErrTooLarge)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caps = slices.Sorted(slices.Values(caps))
	return nil
}

// can reports whether the worker can start a workflow.
func (l *link) can(workflow string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return has(l.caps, workflow)
}

// has reports whether a sorted list holds a name.
func has(sorted []string, name string) bool {
	_, ok := slices.BinarySearch(sorted, name)
	return ok
}

// refuse tells the worker why, and waits a moment for it to hang up: what is closed too early
// takes the reason with it.
func (l *link) refuse(err error) error {
	if err := l.lines.send(message{Type: msgRefused, Code: protocol.CodeOf(err), Message: err.Error()}); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		if _, err := l.lines.next(time.Until(deadline)); err != nil {
			break
		}
	}
	return nil
}

// attach makes l the link of its worker. An older link of the same process gives way, and one
// that does not answer any more; else the newcomer is refused, also where the other process is connected to another hub.
func (h *Hub) attach(l *link) error {
	if old := h.link(l.id); old != nil && old.instance != l.instance && old.answers(h.Asking) {
		return fmt.Errorf("worker %s: %w", l.id, ErrWorkerTaken)
	}
	if err := l.remember(); err != nil {
		return err
	}
	h.mu.Lock()
	old := h.links[l.id]
	switch {
	case h.closed:
		h.mu.Unlock()
		return protocol.ErrShuttingDown
	case old == nil && len(h.links) >= maxWorkers:
		h.mu.Unlock()
		return fmt.Errorf("%d workers are connected: %w", maxWorkers, protocol.ErrRateLimited)
	}
	h.links[l.id] = l
	h.mu.Unlock()
	if old != nil {
		old.close(fmt.Errorf("the worker connected anew"))
	}
	return l.announce()
}

// remember takes what the registry knows of the worker. The newest lease is asked for first: what another hub gives to the process
// that is announced here is a later one.
func (l *link) remember() error {
	s, err := l.hub.Queue.Stats(l.ctx)
	if err != nil {
		return err
	}
	known, err := l.hub.Registry.List(l.ctx)
	i := slices.IndexFunc(known, func(a queue.Worker) bool { return a.ID == l.id })
	if err != nil || i < 0 {
		return err
	}
	a := known[i]
	l.drained = a.Draining
	l.drains(a.Draining)
	l.renewed, l.renewal = a.Instance != "" && a.Instance != l.instance, s.Epoch
	if l.renewed && a.Elsewhere {
		return fmt.Errorf("worker %s, at another hub: %w", l.id, ErrWorkerTaken)
	}
	return nil
}

// drains says whether the worker gets jobs.
func (l *link) drains(yes bool) {
	l.mu.Lock()
	l.draining = yes
	l.mu.Unlock()
	l.restart()
}

// answers reports whether the other end of a link is alive.
func (l *link) answers(patience time.Duration) bool {
	pong := make(chan bool, 1)
	l.hub.work.Go(func() {
		_, err := l.tunnel.Ping()
		pong <- err == nil
	})
	select {
	case ok := <-pong:
		return ok
	case <-time.After(patience):
		return false
	}
}

// close ends a link; why is for the log.
func (l *link) close(why error) {
	l.cancel(why)
	_ = l.tunnel.Close() // it is over in any case
}

// detach forgets a link that ended, unless a newer one has its place.
func (h *Hub) detach(l *link) {
	h.mu.Lock()
	current := h.links[l.id] == l
	if current {
		delete(h.links, l.id)
	}
	h.mu.Unlock()
	if current {
		if err := h.Registry.Withdraw(context.WithoutCancel(l.ctx), l.id); err != nil && !errors.Is(err, queue.ErrClosed) && !isAway(err) { // else its time passes
			h.Log.Error("registry", "worker", l.id, "error", err)
		}
		for _, other := range h.all() {
			other.restart() // a job that was left to l may be another's now
		}
	}
	h.noticed()
}

// announce tells the registry that the worker is there.
func (l *link) announce() error {
	l.mu.Lock()
	l.heard = time.Now()
	a := queue.Worker{ID: l.id, Name: l.name, Version: l.version, Caps: l.caps, Runs: len(l.runs),
		Capacity: l.capacity, Busy: len(l.busy) + len(l.begun), Key: l.key, Instance: l.instance}
	l.mu.Unlock()
	defer l.hub.noticed()
	draining, err := l.hub.Registry.Announce(l.ctx, a, l.hub.TTL)
	if isAway(err) {
		return nil // the worker stays connected, and is announced with a later message
	}
	if err == nil && draining != l.drained { // another hub was asked to
		l.drained = draining
		l.drains(draining)
	}
	return err
}

// stalled reports whether the worker has not been heard of for longer than it should.
func (l *link) stalled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.heard) > 2*l.hub.Heartbeat
}

// serve takes the messages of the worker until the link ends.
func (l *link) serve() error {
	var all sync.WaitGroup
	defer all.Wait()
	defer l.via.CloseIdleConnections()
	err := l.listen(func() { all.Go(l.dispatch) })
	l.close(err)
	return context.Cause(l.ctx)
}

func (l *link) listen(ready func()) error {
	for {
		m, err := l.lines.next(l.hub.TTL)
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout():
			return fmt.Errorf("not heard of for %v", l.hub.TTL)
		case err != nil:
			return err
		}
		switch m.Type {
		case msgHeartbeat:
			err = errors.Join(l.lines.send(message{Type: msgHeartbeat}), l.hub.claim(l, nil))
		case msgRuns:
			err = l.hub.claim(l, m.Runs)
		case msgCaps:
			if err = l.learn(m.Caps); err == nil {
				l.restart()
				l.hub.shares()
			}
		case msgReady:
			if ready == nil {
				break
			}
			if l.renewed { // it would have said that it has the runs of its leases
				err = l.hub.Queue.Return(l.ctx, l.id, l.renewal)
			}
			ready()
			ready = nil
			l.hub.shares()
		case msgBegun:
			l.begunElsewhere(m)
		case msgPassed:
			err = l.passed(m)
		case msgConfirm:
			err = l.confirm(question{m.Job, m.Epoch})
		}
		if err == nil {
			err = errors.Join(l.mayBe(), l.announce()) // its id may have got a token of its own since
		}
		if m.Type == msgReady || m.Type == msgCaps {
			l.hub.mu.Lock()
			l.hub.wake()
			l.hub.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

// confirm tells the worker whether its lease of a job holds.
func (l *link) confirm(q question) error {
	l.mu.Lock()
	until, ok := l.leases[q]
	l.mu.Unlock()
	left := time.Until(until).Milliseconds()
	return l.lines.send(message{Type: msgConfirmed, Job: q.job, Epoch: q.epoch, OK: ok && left > 0, LeftMS: max(0, left)})
}
