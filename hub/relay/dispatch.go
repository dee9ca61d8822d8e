package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/reply"
	"wf/protocol"
)

// answer is what a worker said to a request.
type answer struct {
	status int
	media  string
	body   []byte
}

// write passes the answer on, with the headers of the hub.
func (a *answer) write(w http.ResponseWriter) {
	s := newShield(w, reply.WriteTime)
	s.Header().Set("Content-Type", a.media)
	s.WriteHeader(a.status)
	_, _ = s.Write(a.body) // a client that has gone needs no answer
}

// code is that of the error in an answer.
func (a *answer) code() string {
	var f struct{ Code string }
	if json.Unmarshal(a.body, &f) != nil || f.Code == "" {
		return "http_" + strconv.Itoa(a.status)
	}
	return f.Code
}

// errOtherRun is a worker that answers a job with a run that the job does not make.
var errOtherRun = errors.New("the worker answered with a run that is not that of the job")

// maxStarted bounds what a worker answers to a start, or of its head.
const maxStarted = 16 << 20

// startJob has the worker start a job, under the lease: extended while the worker works on it,
// and given back by what came of it. Without an answer it is not known whether the worker has
// started the run: the lease is left to lapse, which gives the worker time to say so.
func (l *link) startJob(lease queue.Lease) {
	h, e := l.hub, lease.Entry()
	h.noticed()
	defer h.noticed()
	q := question{e.ID, e.Epoch}
	ctx, cancel := context.WithTimeout(l.ctx, h.Starting)
	defer cancel()
	l.holds(q, lease.Until())
	defer l.forgets(q)
	var stop func()
	ctx, stop = l.extend(ctx, lease, q)
	box, gone := h.Queue.Box(ctx, e.ID)
	var got *answer
	err := gone
	if err == nil {
		l.begins(e.ID)
		got, err = l.postBox(ctx, q, e, box)
	}
	stop()
	if err != nil || got.status/100 != 2 {
		l.begunNot(e.ID)
	}
	log := h.Log.With("job", e.ID, "workflow", e.Workflow, "worker", l.id, "attempt", e.Attempts)
	switch {
	case errors.Is(gone, queue.ErrBodyGone): // its keys were taken away since
		err = lease.Retry(l.ctx, 0, queue.ErrBodyGone.Code)
	case err == nil && got.status/100 == 2:
		err = l.started(lease, got)
		if err == nil {
			log.Info("job started")
			return
		}
		log.Error("job started, and not recorded", "error", err)
		if errors.Is(err, errOtherRun) {
			l.begunNot(e.ID)
			l.fails(e.ID)
			err = lease.Retry(l.ctx, pause(e.Attempts), "other_run")
		}
	case l.ctx.Err() != nil:
		log.Warn("the worker went away while it started a job", "error", context.Cause(l.ctx))
	case err != nil:
		log.Warn("no answer to the start of a job", "error", err)
		l.fails(e.ID)
		err = nil
	case got.code() == queue.ErrLeaseLost.Code:
		log.Warn("the worker says that its lease has ended")
	case got.status/100 == 4 && got.status != http.StatusTooManyRequests && got.status != http.StatusUnauthorized && got.status != http.StatusForbidden:
		log.Warn("job refused", "code", got.code())
		h.refused.Put(e.ID, got, 1)
		err = lease.Dead(l.ctx, got.code())
	default:
		log.Warn("job not started", "code", got.code())
		h.refused.Put(e.ID, got, 1)
		l.fails(e.ID)
		err = lease.Retry(l.ctx, pause(e.Attempts), got.code())
	}
	if err != nil && l.ctx.Err() == nil {
		log.Warn("lease", "error", err)
	}
}

// fails remembers a job that the worker did not start.
func (l *link) fails(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) >= maxRefusals {
		clear(l.failed)
	}
	l.failed[job] = true
}

// pause is how long a job rests after n attempts.
func pause(n int) time.Duration { return time.Second << max(0, n-1) }

func (l *link) holds(q question, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[q] = until
}

func (l *link) forgets(q question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, q)
}

// extend keeps a lease until stop is called. The context it returns ends when the lease is
// lost.
func (l *link) extend(ctx context.Context, lease queue.Lease, q question) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(l.hub.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-lease.Lost():
				l.forgets(q)
				if !l.hub.doneBy(ctx, q.job, l.id) { // another hub may have heard first that it has begun
					cancel()
				}
				return
			case <-tick.C:
				if lease.Extend(ctx) == nil {
					l.holds(q, lease.Until())
				}
			}
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// doneBy reports whether a job is done by a worker.
func (h *Hub) doneBy(ctx context.Context, job, worker string) bool {
	e, err := h.Queue.Find(ctx, job)
	return err == nil && e.State == queue.Done && e.Worker == worker
}

// begins notes that a job is given to the worker, until it says of the run whether it drives it.
func (l *link) begins(job string) {
	if l.capacity == 0 {
		return // it does not say what it drives
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[job] = true
}

// begunNot takes begins back.
func (l *link) begunNot(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.begun, job)
}

// begunElsewhere takes what the worker says of a job that another hub gave it.
func (l *link) begunElsewhere(m message) {
	defer l.freed(l.used())
	if m.OK {
		l.begins(m.Job)
	} else {
		l.begunNot(m.Job)
	}
}

// get reads a path of the worker as the hub itself.
func (l *link) get(ctx context.Context, path string) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, workerBase+path, nil)
	if err != nil {
		return nil, err
	}
	introduce(r.Header, hubIdentity)
	return l.do(r)
}

// hubIdentity is the hub when it asks for itself.
var hubIdentity = guard.Identity{Name: "hub", Scopes: []guard.Scope{guard.Read}}

// workerBase begins the addresses at a worker; its streams lead nowhere else.
const workerBase = "http://agent"

// introduce names the client in a request to a worker.
func introduce(h http.Header, id guard.Identity) {
	var scopes []string
	for _, s := range id.Scopes {
		scopes = append(scopes, string(s))
	}
	h.Set(headerBy, id.Name)
	h.Set(headerScopes, strings.Join(scopes, " "))
}

func (l *link) do(r *http.Request) (*answer, error) {
	res, err := l.via.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxStarted+1))
	if err == nil && len(body) > maxStarted {
		err = fmt.Errorf("worker %s: %s has more than %d bytes: %w", l.id, r.URL.Path, maxStarted, protocol.ErrTooLarge)
	}
	return &answer{res.StatusCode, res.Header.Get("Content-Type"), body}, err
}

// started writes the pointer of the run that a job became, and then ends the job: its first
// event is durable and known. The pointer decides: where the lease was lost meanwhile and
// another worker was faster, the run is that one's, and this worker is sent msgMoved.
func (l *link) started(lease queue.Lease, got *answer) error {
	h, e := l.hub, lease.Entry()
	var s struct{ ID protocol.RunID }
	if err := json.Unmarshal(got.body, &s); err != nil || s.ID == "" || !queue.Plain(string(s.ID), 128) {
		return fmt.Errorf("the worker answered %.100q to a start: %w", got.body, protocol.ErrBadRequest)
	}
	if !h.makes(e.ID, s.ID) {
		return fmt.Errorf("run %s: %w", s.ID, errOtherRun)
	}
	r := Run{ID: s.ID, RequestID: e.ID}
	head, err := l.get(l.ctx, "/v1/runs/"+escape(string(s.ID)))
	if err != nil {
		return err
	}
	var at struct {
		Head string
		Seq  protocol.Seq
	}
	if err := json.Unmarshal(head.body, &at); err != nil || head.status != http.StatusOK || at.Seq < 1 {
		return fmt.Errorf("the worker has started run %s and shows no head of it (status %d): %w", s.ID, head.status, protocol.ErrBadRequest)
	}
	r.HeadSeq, r.HeadCID = at.Seq, at.Head
	owner, err := h.point(l, r, &e)
	if err != nil {
		if isAway(err) { // the worker says it again, and until then no other one is given the job
			h.learn(e.ID, claimed{l.id, s.ID})
		}
		return err
	}
	h.learn(e.ID, claimed{owner, s.ID})
	if owner == l.id {
		err = lease.Done(l.ctx, s.ID)
	}
	if owner != l.id || errors.Is(err, queue.ErrLeaseLost) {
		err = h.Queue.Settle(l.ctx, e.Job, owner, s.ID)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", s.ID, err)
	}
	if owner != l.id {
		return l.lines.send(message{Type: msgMoved, Run: s.ID, To: owner})
	}
	return nil
}
