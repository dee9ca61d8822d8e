package relay

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/reply"
	"wf/hub/server"
	"wf/protocol"
)

// route is an entry of the hub's API.
type route struct {
	path   string
	scope  guard.Scope // "" is open to all
	asks   takes
	handle func(*Hub, http.ResponseWriter, *http.Request) error
}

// takes says which parameters a route has in its query.
type takes bool

const (
	nothing takes = false // none: any is refused here
	its     takes = true  // those of what serves it, which refuses others
)

// routes is the one table of the hub's API: that of a worker (package api), and what only a hub
// has.
var routes = []route{
	{"GET /healthz", "", its, (*Hub).alike},
	{"GET /readyz", "", its, (*Hub).alike},
	{"GET /metrics", guard.Metrics, its, (*Hub).alike},
	{"GET /v1/openapi.json", "", its, (*Hub).alike},
	{"GET /v1/info", guard.Read, its, (*Hub).alike},
	{"POST /v1/codes", guard.Admin, its, (*Hub).alike},
	{"GET " + WorkerPath, guard.Worker, its, (*Hub).worker},
	{"GET /v1/agents", guard.Read, nothing, (*Hub).workers},
	{"GET /v1/queue", guard.Read, nothing, (*Hub).jobs},
	{"POST /v1/queue/{id}/cancel", guard.Run, nothing, ofJob("cancelled", queue.Queue.Cancel)},
	{"POST /v1/queue/{id}/retry", guard.Run, nothing, ofJob("tried again", queue.Queue.Retry)},
	{"POST /v1/queue/{id}/purge", guard.Admin, nothing, ofJob("purged", queue.Queue.Purge)},
	{"POST /v1/agents/{id}/drain", guard.Admin, nothing, drain(true)},
	{"POST /v1/agents/{id}/undrain", guard.Admin, nothing, drain(false)},
	{"POST /v1/agents/{id}/forget", guard.Admin, nothing, (*Hub).forget},
	{"GET /v1/workflows", guard.Read, nothing, (*Hub).workflows},
	{"GET /v1/runs", guard.Read, its, (*Hub).runs},
	{"POST /v1/runs", guard.Run, nothing, (*Hub).submit},
	{"GET /v1/runs/{id}", guard.Read, its, (*Hub).ofRun},
	{"DELETE /v1/runs/{id}", guard.Admin, its, (*Hub).ofRun},
	{"GET /v1/runs/{id}/{rest...}", guard.Read, its, (*Hub).ofRun},
	{"POST /v1/runs/{id}/answer", guard.Answer, its, (*Hub).ofRun},
	{"POST /v1/runs/{id}/messages", guard.Answer, its, (*Hub).ofRun},
	{"POST /v1/runs/{id}/{rest...}", guard.Run, its, (*Hub).ofRun},
	{"POST /v1/runs/{id}/archive/parts", guard.Read, its, (*Hub).ofRun},
	{"POST " + server.ImportPath, guard.Admin, its, (*Hub).ofWorker},
	{"POST " + server.ImportPath + "/lacking", guard.Admin, its, (*Hub).ofWorker},
	{"GET /v1/sessions/{id}/events", guard.Read, its, (*Hub).ofRun},
	{"GET /v1/memories", guard.Read, its, (*Hub).ofWorker},
	{"GET /v1/memories/{rest...}", guard.Read, its, (*Hub).ofWorker},
	{"POST /v1/memories/recall", guard.Read, its, (*Hub).ofWorker},
	{"POST /v1/memories/{rest}", guard.Run, its, (*Hub).ofWorker},
	{"GET /v1/notifications", guard.Read, its, (*Hub).notifications},
	{"POST /v1/notifications/retry", guard.Admin, its, (*Hub).notifications},
	{"GET /v1/deletions", guard.Read, its, (*Hub).ofWorker},
	{"GET /v1/tables", guard.Read, its, (*Hub).ofWorker},
	{"GET /v1/tables/{table}", guard.Read, its, (*Hub).ofWorker},
	{"GET /v1/blocks/{cid}", guard.Read, its, (*Hub).block},
	{"GET /v1/replay", guard.Read, its, (*Hub).replay},
}

// Handler serves the hub. It expects requests that a guard let in: their guard.Identity
// decides what they may do.
func (h *Hub) Handler() http.Handler {
	h.start()
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) {
			var err error
			if r.scope != "" {
				err = guard.Need(req.Context(), r.scope)
			}
			if err == nil && r.asks == nothing {
				_, err = server.Query(req)
			}
			if err == nil {
				err = r.handle(h, w, req)
			}
			if req.Method != http.MethodGet {
				h.noticed()
			}
			if err != nil {
				reply.Error(w, err)
			}
		})
	}
	server.Missing(mux, nothingElse)
	mux.Handle("/", h.self)
	return mux
}

// isGone reports whether a job is no longer there, or the queue.
func isGone(err error) bool {
	return errors.Is(err, queue.ErrUnknownJob) || errors.Is(err, queue.ErrClosed)
}

// isAway reports whether the database of the queue does not answer.
func isAway(err error) bool { return errors.Is(err, protocol.ErrUnreachable) }

// nothingElse is the advice where nothing is served.
const nothingElse = "a hub has the interface of a worker, /v1/agents and /v1/queue; webhooks are taken by the worker itself"

// alike serves what a hub answers as a worker does.
func (h *Hub) alike(w http.ResponseWriter, r *http.Request) error {
	h.self.ServeHTTP(w, r)
	return nil
}

// workers serves GET /v1/agents.
func (h *Hub) workers(w http.ResponseWriter, r *http.Request) error {
	items, err := h.Registry.List(r.Context())
	for i := range items { // the list of workflows has the definitions
		items[i].Caps = slices.DeleteFunc(slices.Clone(items[i].Caps), func(c string) bool { _, pin := api.Unpinned(c); return pin != "" })
	}
	if err == nil {
		reply.JSON(w, http.StatusOK, Agents{"wf.agents/v1", items})
	}
	return err
}

// jobs serves GET /v1/queue.
func (h *Hub) jobs(w http.ResponseWriter, r *http.Request) error {
	items, err := h.listed(r.Context())
	if err == nil {
		reply.JSON(w, http.StatusOK, Queue{"wf.queue/v1", items})
	}
	return err
}

// ofJob serves what is done to a job: it answers with what became of it.
func ofJob(what string, do func(queue.Queue, context.Context, string) (queue.Entry, error)) func(*Hub, http.ResponseWriter, *http.Request) error {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error {
		e, err := do(h.Queue, r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		h.Log.Info("job "+what, "job", e.ID, "workflow", e.Workflow)
		for _, l := range h.all() {
			l.forgives(e.ID)
		}
		reply.JSON(w, http.StatusOK, Queued{"wf.queued/v1", h.explained(e)})
		return nil
	}
}

// drain serves POST /v1/agents/{id}/drain and undrain: whether a worker gets jobs.
func drain(yes bool) func(*Hub, http.ResponseWriter, *http.Request) error {
	return func(h *Hub, w http.ResponseWriter, r *http.Request) error {
		id := r.PathValue("id")
		if err := h.Registry.Drain(r.Context(), id, yes); err != nil {
			return err
		}
		if l := h.link(id); l != nil {
			l.drains(yes)
		}
		h.Log.Info("worker drains", "worker", id, "drains", yes)
		return h.workers(w, r)
	}
}

// forget serves POST /v1/agents/{id}/forget: a worker that is gone for good. Jobs that it alone could open are dead.
func (h *Hub) forget(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := h.Registry.Forget(r.Context(), id); err != nil {
		return err
	}
	if err := h.Queue.Forget(r.Context(), id); err != nil {
		return err
	}
	h.Log.Info("worker forgotten", "worker", id)
	return h.workers(w, r)
}

// Agents is wf.agents/v1: the workers by name, those that are away too.
type Agents struct {
	Schema string         `json:"schema"`
	Items  []queue.Worker `json:"items"`
}

// Queue is wf.queue/v1: jobs, the oldest first.
type Queue struct {
	Schema string        `json:"schema"`
	Items  []queue.Entry `json:"items"`
}

// Queued is wf.queued/v1: a job that is no run yet.
type Queued struct {
	Schema string `json:"schema"`
	queue.Entry
}
