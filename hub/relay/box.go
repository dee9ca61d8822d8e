package relay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/reply"
	"wf/hub/seal"
	"wf/hub/server"
	"wf/protocol"
)

// content is what a box holds: a request, with the client that submitted it.
type content struct {
	By     string          `json:"by"`
	Scopes []guard.Scope   `json:"scopes"`
	Body   json.RawMessage `json:"body"`
}

// box seals a submission to the workers of a workflow. Those that have announced no key are passed over.
func (x *submission) box(workers []queue.Worker) (s queue.Sealed, err error) {
	text, err := protocol.PlainJSON(content{x.by.Name, x.by.Scopes, x.body})
	if err != nil {
		return s, err
	}
	job := seal.Job{ID: x.job.ID, Workflow: x.job.Workflow}
	var key []byte
	if s.Box, key, err = seal.Close(job, text); err != nil {
		return s, err
	}
	defer clear(key)
	defer clear(text)
	s.Digest = x.digest
	for _, a := range workers {
		if len(a.Key) == 0 {
			continue
		}
		sealed, err := seal.For(a.Key, job, key)
		if err != nil {
			return s, fmt.Errorf("worker %s: %w", a.ID, err)
		}
		s.Keys = append(s.Keys, queue.Key{Worker: a.ID, To: seal.Name(a.Key), Sealed: sealed})
	}
	return s, nil
}

// keyOf is the key that the worker of a link has of a job, nil for none.
func (l *link) keyOf(e queue.Entry) []byte {
	i := slices.IndexFunc(e.Keys, func(k queue.Key) bool { return k.Worker == l.id && k.To == l.keyName })
	if i < 0 {
		return nil
	}
	return e.Keys[i].Sealed
}

// maxBox bounds a box that a worker opens: the longest request, and what is around it.
const maxBox = 17 << 20

// unbox opens the box of a job in the place of its body. The client is who the box says.
func (a *Worker) unbox(r *http.Request, job string) error {
	if r.Header.Get(headerKey) == "" {
		return nil // of a hub that seals nothing
	}
	key, err := base64.StdEncoding.DecodeString(r.Header.Get(headerKey))
	if err != nil {
		return reply.Badf("%s: %v", headerKey, err)
	}
	workflow, err := url.PathUnescape(r.Header.Get(headerWorkflow))
	if err != nil {
		return reply.Badf("%s: %v", headerWorkflow, err)
	}
	if a.Identity == nil {
		return fmt.Errorf("job %s: this worker has announced no key: %w", job, seal.ErrSealed)
	}
	box, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBox))
	if err != nil {
		return reply.BodyError(err)
	}
	text, err := a.Identity.Open(seal.Job{ID: job, Workflow: workflow}, key, box)
	if err != nil {
		return err
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return reply.BodyError(err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.Body)), int64(len(c.Body))
	r.Header.Set("Content-Type", "application/json")
	introduce(r.Header, guard.Identity{Name: c.By, Scopes: c.Scopes})
	s, err := server.ReadStart(r)
	if err != nil {
		return err
	}
	if s.RequestID != job || s.Workflow != workflow {
		return fmt.Errorf("job %s of %s holds the request %q of %q: %w", job, workflow, s.RequestID, s.Workflow, seal.ErrSealed)
	}
	r.Body = io.NopCloser(bytes.NewReader(c.Body))
	return nil
}

// postBox sends a job to the worker, as it is sealed.
func (l *link) postBox(ctx context.Context, q question, e queue.Entry, box []byte) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, workerBase+"/v1/runs", bytes.NewReader(box))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set(headerJob, q.job)
	r.Header.Set(headerEpoch, strconv.FormatUint(q.epoch, 10))
	r.Header.Set(headerKey, base64.StdEncoding.EncodeToString(l.keyOf(e)))
	r.Header.Set(headerWorkflow, url.PathEscape(e.Workflow))
	return l.do(r)
}

// asking is a key that a worker was asked to pass on.
type asking struct{ job, to, name string }

// share has the keys of jobs passed on to the workers that have joined since: by one that has them and is there. A job that is
// leased may come back to the queue, and then no worker joins once more.
func (h *Hub) share(ctx context.Context) error {
	jobs, err := h.Queue.List(ctx)
	if err != nil {
		return err
	}
	links := h.all()
	for _, e := range jobs {
		if e.State != queue.Queued && e.State != queue.Leased || len(e.Keys) == 0 {
			continue
		}
		has := slices.IndexFunc(links, func(l *link) bool { return l.keyOf(e) != nil && !l.stalled() })
		if has < 0 {
			continue
		}
		for _, to := range links {
			if len(to.key) == 0 || !to.can(e.Workflow) || to.keyOf(e) != nil || !links[has].asks(asking{e.ID, to.id, to.keyName}) {
				continue
			}
			m := message{Type: msgPass, Job: e.ID, Workflow: e.Workflow, Sealed: links[has].keyOf(e), To: to.id, Key: to.key}
			if err := links[has].lines.send(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// shares is share in the background.
func (h *Hub) shares() {
	if !h.begin() {
		return
	}
	go func() {
		defer h.work.Done()
		if err := h.share(context.Background()); err != nil {
			h.Log.Warn("keys of jobs are not passed on", "error", err)
		}
	}()
}

// asks notes that the worker is asked for a key; false says that it was asked already.
func (l *link) asks(a asking) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked[a] {
		return false
	}
	l.asked[a] = true
	return true
}

// passed takes a key that the worker was asked to pass on.
func (l *link) passed(m message) error {
	to := l.hub.link(m.To)
	if to == nil {
		return nil
	}
	l.mu.Lock()
	asked := l.asked[asking{m.Job, m.To, to.keyName}]
	l.mu.Unlock()
	if !asked || len(m.Sealed) == 0 || len(m.Sealed) > 1<<10 {
		return nil
	}
	err := l.hub.Queue.Share(l.ctx, m.Job, queue.Key{Worker: m.To, To: to.keyName, Sealed: m.Sealed})
	if err != nil && !isGone(err) && !isAway(err) {
		return err
	}
	return nil
}
