package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"wf/api"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/reply"
	"wf/protocol"
)

// ErrJobDead is a job that is not tried again.
var ErrJobDead = &protocol.Error{Code: "job_dead", Message: "the job was given up", Hint: "see why, then submit it with another request id"}

// submit serves POST /v1/runs: it queues a job and answers when the run has begun, or that it
// has not yet.
func (h *Hub) submit(w http.ResponseWriter, r *http.Request) error {
	id, _ := guard.Of(r.Context())
	job, body, fresh, err := readJob(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.Holding)
	defer cancel()
	if !fresh {
		// The run may have been begun by a worker that is not back yet.
		if done, err := h.known(w, ctx, job); done || err != nil {
			return err
		}
	}
	if err := h.keep(ctx, job.ID, &payload{body: body, by: id}); err != nil {
		return err
	}
	_, first, err := h.Queue.Submit(ctx, job)
	if err != nil {
		h.payloads.drop(job.ID)
		return err
	}
	e, err := h.Queue.Await(ctx, job.ID)
	if err != nil && r.Context().Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		if e, err = h.Queue.Find(r.Context(), job.ID); err != nil {
			return err
		}
		reply.JSON(w, http.StatusAccepted, Queued{"wf.queued/v1", e})
		return nil
	}
	if err != nil {
		return err
	}
	return h.concluded(w, e, first)
}

// readJob reads a POST /v1/runs as far as the hub needs to know it. A body without a request id
// gets one, and is fresh then.
func readJob(r *http.Request) (job queue.Job, body []byte, fresh bool, err error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return job, nil, false, reply.Badf("the body is %q, application/json is wanted", r.Header.Get("Content-Type"))
	}
	if body, err = io.ReadAll(r.Body); err != nil {
		return job, nil, false, reply.BodyError(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return job, nil, false, reply.BodyError(err)
	}
	for name, into := range map[string]*string{"workflow": &job.Workflow, "request_id": &job.ID} {
		if raw, ok := fields[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return job, nil, false, reply.Badf("%s: %v", name, err)
			}
		}
	}
	if by := r.Header.Get(protocol.CausedByHeader); by != "" && fields["caused_by"] == nil { // the header does not travel on
		if fields["caused_by"], err = json.Marshal(by); err == nil {
			body, err = json.Marshal(fields)
		}
		if err != nil {
			return job, nil, false, err
		}
	}
	if job.Workflow == "" {
		return job, nil, false, reply.Badf("workflow is missing: the name of one that GET /v1/workflows lists")
	}
	fresh = r.Header.Get(client.FreshHeader) != ""
	if job.ID == "" {
		job.ID, fresh = client.NewRequestID(), true
		if fields["request_id"], err = json.Marshal(job.ID); err == nil {
			body, err = json.Marshal(fields)
		}
	}
	return job, body, fresh, err
}

// known answers a submission if its run has begun, as soon as the hub can tell.
func (h *Hub) known(w http.ResponseWriter, ctx context.Context, job queue.Job) (bool, error) {
	for {
		graceOver := !h.inGracePeriod()
		h.mu.Lock()
		c, ok := h.requests[job.ID]
		changed := h.changed
		h.mu.Unlock()
		if ok {
			return true, h.concluded(w, queue.Entry{Job: job, State: queue.Done, Worker: c.worker, Run: c.run}, false)
		}
		e, err := h.Queue.Find(ctx, job.ID)
		if err == nil && (e.State == queue.Done || e.State == queue.Dead) {
			return true, h.concluded(w, e, false)
		}
		if graceOver {
			return false, nil
		}
		select {
		case <-h.graceOver:
		case <-changed:
		case <-ctx.Done():
			return false, fmt.Errorf("the hub has just started, and waits for its workers: %w", protocol.ErrWorkerAway)
		}
	}
}

// concluded answers with what became of a job.
func (h *Hub) concluded(w http.ResponseWriter, e queue.Entry, fresh bool) error {
	if e.State == queue.Dead {
		h.payloads.drop(e.ID)
		if a, ok := h.payloads.refused.Get(e.ID); ok {
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
		case err == nil:
			l.startJob(lease)
		case l.ctx.Err() != nil:
		case errors.Is(err, queue.ErrClosed):
			return
		case !errors.Is(err, context.Canceled):
			h.Log.Error("queue", "worker", l.id, "error", err)
			sleep(l.ctx, time.Second)
		}
	}
}

// fits reports whether the worker is to have a job: it can start it, the hub has the body, and
// if it failed to start it before, no other worker could.
func (l *link) fits(j queue.Job) bool {
	if !l.can(j.Workflow) || l.hub.payloads.get(j.ID) == nil {
		return false
	}
	if !l.hasFailed(j.ID) {
		return true
	}
	for _, other := range l.hub.all() {
		if other != l && other.can(j.Workflow) && !other.stalled() && !other.hasFailed(j.ID) {
			return false
		}
	}
	return true
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
