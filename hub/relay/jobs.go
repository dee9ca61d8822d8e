package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"wf/api"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/reply"
	"wf/hub/server"
	"wf/protocol"
)

// ErrJobDead is a job that is not tried again.
var ErrJobDead = &protocol.Error{Code: "job_dead", Message: "the job was given up", Hint: "see why, then submit it with another request id"}

// ErrNoWorker is a submission of which no worker could open the box.
var ErrNoWorker = &protocol.Error{Code: "no_worker", Message: "no worker can take the job", Hint: "start a worker of this version of wf that has the workflow: wf serve --hub URL"}

// Bounds of what waits.
const (
	maxJobs     = 10_000
	maxBoxBytes = 4 << 30
)

// A submission is a POST /v1/runs, as it was read.
type submission struct {
	job    queue.Job
	by     guard.Identity
	body   []byte            // what a worker gets
	digest map[string]string // of its parts
	inputs map[string]string // names of the digests of inputs
	fresh  bool              // its id was made just now
}

// submit serves POST /v1/runs: it queues a job and answers when the run has begun, or that it
// has not yet.
func (h *Hub) submit(w http.ResponseWriter, r *http.Request) error {
	x, err := h.readSubmission(r)
	if err != nil {
		return err
	}
	// It bounds what is waited for, not what is stored: that takes as long as the disk does.
	holding, cancel := context.WithTimeout(r.Context(), h.Holding)
	defer cancel()
	if !x.fresh {
		// The run may have been begun by a worker that is not back yet.
		if done, err := h.known(w, r.Context(), holding, x); done || err != nil {
			return err
		}
	}
	first, err := h.enqueue(r.Context(), holding, x)
	if err != nil {
		return err
	}
	h.noticed() // while the request is held
	e, err := h.Queue.Await(holding, x.job.ID)
	if err != nil && r.Context().Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		if e, err = h.Queue.Find(r.Context(), x.job.ID); err != nil {
			return err
		}
		reply.JSON(w, http.StatusAccepted, Queued{"wf.queued/v1", h.explained(e)})
		return nil
	}
	if err != nil {
		return err
	}
	return h.concluded(w, e, first)
}

// readSubmission reads a POST /v1/runs, and refuses what every worker would. A body without a request id
// gets one, and is fresh then. The priority is for the hub alone.
func (h *Hub) readSubmission(r *http.Request) (*submission, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, reply.BodyError(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s, err := server.ReadStart(r)
	if err != nil {
		return nil, err
	}
	x := &submission{job: queue.Job{ID: s.RequestID, Workflow: s.Workflow, Priority: s.Priority}, body: body, fresh: r.Header.Get(client.FreshHeader) != ""}
	x.by, _ = guard.Of(r.Context())
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, reply.BodyError(err)
	}
	if x.job.ID == "" {
		x.job.ID, x.fresh = client.NewRequestID(), true
		if fields["request_id"], err = json.Marshal(x.job.ID); err != nil {
			return nil, err
		}
	}
	if by := r.Header.Get(protocol.CausedByHeader); by != "" && fields["caused_by"] == nil { // the header does not travel on
		if fields["caused_by"], err = json.Marshal(by); err != nil {
			return nil, err
		}
	}
	delete(fields, "priority")
	if x.body, err = protocol.PlainJSON(fields); err != nil {
		return nil, err
	}
	h.digests(x, fields)
	return x, x.job.Check()
}

// enqueue makes a job durable, sealed to the workers that have its workflow. first is false for one that was there.
func (h *Hub) enqueue(ctx, holding context.Context, x *submission) (first bool, err error) {
	workers, err := h.having(ctx, holding, x.job.Workflow)
	if err != nil {
		return false, err
	}
	s, err := x.box(workers)
	if err != nil {
		return false, err
	}
	if len(s.Keys) == 0 {
		return false, fmt.Errorf("workflow %s: none of its %d workers has announced a key: %w", x.job.Workflow, len(workers), ErrNoWorker)
	}
	if n, err := h.Queue.Stats(ctx); err != nil {
		return false, err
	} else if n.Queued+n.Leased >= maxJobs || n.Bytes+int64(len(s.Box)) > maxBoxBytes {
		return false, fmt.Errorf("too many jobs wait already: %w", protocol.ErrRateLimited)
	}
	e, first, err := h.Queue.Submit(ctx, x.job, s)
	if err != nil || first {
		return first, err
	}
	if e.State == queue.Dead && revives(e, x) {
		_, err = h.Queue.Resubmit(ctx, x.job, s)
		return true, err
	}
	return false, x.same(e)
}

// having are the workers that have said that they can start a workflow, also those that are away. In the grace period
// others may be on the way.
func (h *Hub) having(ctx, holding context.Context, workflow string) (fit []queue.Worker, err error) {
	for {
		over, woken := !h.inGracePeriod(), h.woken()
		all, err := h.Registry.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			if has(a.Caps, workflow) {
				fit = append(fit, a)
			}
		}
		if len(fit) > 0 {
			return fit, nil
		}
		if over {
			name, definition := api.Unpinned(workflow)
			if definition != "" {
				return nil, protocol.ErrNotFound.With("GET /v1/workflows lists those that there are", "no worker of this hub has the definition %s of a workflow %q", definition, name)
			}
			return nil, protocol.ErrNotFound.With("GET /v1/workflows lists those that there are", "no worker of this hub has a workflow %q", workflow)
		}
		select {
		case <-h.graceOver:
		case <-woken:
		case <-holding.Done():
			return nil, errJustStarted
		}
	}
}

var errJustStarted = fmt.Errorf("the hub has just started, and waits for its workers: %w", protocol.ErrWorkerAway)

// known answers a submission if its run has begun, as soon as the hub can tell.
func (h *Hub) known(w http.ResponseWriter, ctx, holding context.Context, x *submission) (bool, error) {
	for {
		graceOver, changed := !h.inGracePeriod(), h.woken()
		e, err := h.Queue.Find(ctx, x.job.ID)
		switch {
		case err == nil && e.State == queue.Done:
			return true, h.again(w, ctx, x, e)
		case err == nil && e.State == queue.Dead && !revives(e, x):
			if err := x.same(e); err != nil {
				return true, err
			}
			return true, h.concluded(w, e, false)
		case err == nil && e.State != queue.Dead:
			if err := x.same(e); err != nil {
				return true, err
			}
		case err != nil && !errors.Is(err, queue.ErrUnknownJob):
			return false, err
		}
		h.mu.Lock()
		c, ok := h.requests[x.job.ID]
		h.mu.Unlock()
		switch {
		case ok:
			return true, h.again(w, ctx, x, queue.Entry{Job: x.job, State: queue.Done, Worker: c.worker, Run: c.run})
		case graceOver:
			return false, nil
		}
		select {
		case <-h.graceOver:
		case <-changed:
		case <-holding.Done():
			return false, errJustStarted
		}
	}
}

// again answers a submission whose request id has a run. The digest of what was submitted tells whether this is the same;
// where there is none, or it differs, the worker says, by what began the run.
func (h *Hub) again(w http.ResponseWriter, ctx context.Context, x *submission, e queue.Entry) error {
	different := x.same(e)
	if e.Digest != nil && different == nil {
		return h.concluded(w, e, false)
	}
	ctx, cancel := context.WithTimeout(ctx, LongestWait)
	defer cancel()
	if l := h.link(e.Worker); l != nil && l.has(ctx, "/v1/runs/"+escape(string(e.Run))) {
		a, err := l.postPlain(ctx, x)
		if err == nil && a.status/100 == 2 {
			return h.concluded(w, e, false)
		}
		if err == nil {
			a.write(w)
			return nil
		}
	}
	if different != nil {
		return different
	}
	return fmt.Errorf("run %s is at the worker %s, which says whether this request is the same: %w", e.Run, e.Worker, protocol.ErrWorkerAway)
}

// postPlain sends a request of which the worker has the run, in the name of its client.
func (l *link) postPlain(ctx context.Context, x *submission) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, workerBase+"/v1/runs", bytes.NewReader(x.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	introduce(r.Header, x.by)
	return l.do(r)
}

// revives reports whether a submission takes the place of a job that is dead: no worker has begun it, and it was neither
// cancelled nor tried as often as a job is.
func revives(e queue.Entry, x *submission) bool {
	return e.Why != queue.WhyCancelled && e.Attempts < queue.Attempts && (!e.Unsure || x.same(e) == nil)
}

// concluded answers with what became of a job.
func (h *Hub) concluded(w http.ResponseWriter, e queue.Entry, fresh bool) error {
	if e.State == queue.Dead {
		if a, ok := h.refused.Get(e.ID); ok && a.code() == e.Why {
			a.write(w)
			return nil
		}
		if e.Why == queue.WhyCancelled {
			return &protocol.Error{Code: ErrJobDead.Code, Message: fmt.Sprintf("job %s was cancelled before a worker began it", e.ID), Hint: "submit it with another request id"}
		}
		return fmt.Errorf("job %s, after %d attempts: %s: %w", e.ID, e.Attempts, e.Why, ErrJobDead)
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	w.Header().Set("Location", "/v1/runs/"+escape(string(e.Run)))
	reply.JSON(w, status, api.Started{Schema: "wf.started/v1", ID: e.Run, Fresh: fresh, Agent: e.Worker})
	return nil
}

// dispatch gives jobs to the worker, one after the other, until the link ends.
func (l *link) dispatch() {
	h := l.hub
	for l.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(l.ctx)
		l.mu.Lock()
		l.restartLease = cancel
		l.mu.Unlock()
		lease, err := h.Queue.Lease(ctx, l.id, l.fits, h.Lease)
		cancel()
		switch {
		case err == nil && l.ctx.Err() != nil: // the worker went away meanwhile
			if err := lease.Retry(context.WithoutCancel(l.ctx), 0, protocol.ErrWorkerAway.Code); err != nil {
				h.Log.Warn("lease", "worker", l.id, "job", lease.Entry().ID, "error", err)
			}
		case err == nil:
			l.startJob(lease)
		case l.ctx.Err() != nil:
		case errors.Is(err, queue.ErrClosed):
			return
		case !errors.Is(err, context.Canceled):
			if !isAway(err) { // else it is reported once
				h.Log.Error("queue", "worker", l.id, "error", err)
			}
			sleep(l.ctx, time.Second)
		}
	}
}

// fits reports whether the worker is to have a job: it can start it now, it can open its box, and
// if it failed to start it before, no other worker could.
func (l *link) fits(e queue.Entry) bool {
	if l.lacks(e) != "" || e.Attempts > 0 && l.hub.inGracePeriod() || l.hub.hasBegun(e) {
		return false
	}
	if !l.hasFailed(e.ID) {
		return true
	}
	for _, other := range l.hub.all() {
		if other != l && other.lacks(e) == "" && !other.stalled() && !other.hasFailed(e.ID) {
			return false
		}
	}
	return true
}

// hasBegun reports whether a worker has said that it has the run of a queued job: then that is recorded.
func (h *Hub) hasBegun(e queue.Entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, begun := h.requests[e.ID]
	if begun = begun && h.mayHaveBegun(c.worker, e); !begun || h.settling[e.ID] || h.closed {
		return begun
	}
	h.settling[e.ID] = true
	h.work.Go(func() {
		err := h.Queue.Settle(context.Background(), e.Job, c.worker, c.run)
		h.mu.Lock()
		delete(h.settling, e.ID)
		h.mu.Unlock()
		if err != nil && !errors.Is(err, queue.ErrClosed) && !isAway(err) {
			h.Log.Error("a job that has begun is not recorded", "job", e.ID, "error", err)
		}
	})
	return true
}

// forgives forgets that the worker failed to start a job.
func (l *link) forgives(job string) {
	l.mu.Lock()
	delete(l.failed, job)
	l.mu.Unlock()
}

func (l *link) hasFailed(job string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed[job]
}

// restart has the worker ask for a job again, with what fits now.
func (l *link) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restartLease != nil {
		l.restartLease()
	}
}
