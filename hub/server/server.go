package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

// Server is the API over a Service. The fields are set once, before use.
type Server struct {
	Service api.Service
	Feed    protocol.Feed // the blocks, and what tells whether something moved

	Kind    string // agent or hub; "" is agent
	Name    string // of the worker
	Version string // of the binary

	Replay http.Handler // GET /v1/replay, a WebSocket
	Events http.Handler // GET /v1/sessions/{id}/events
	Hooks  http.Handler // POST /v1/hooks/{name}, which lets requests in by their signature; nil is none
	Page   http.Handler // everything that is not the API; nil is nothing

	Describe func() ([]byte, error) // GET /v1/openapi.json; nil is OpenAPI

	// MaxArchive is the most bytes of an archive that is imported; 0 is 4 GiB.
	MaxArchive int64

	// NewCode makes a one-time code for a browser of the client whose request the context is of (guard.Of); nil
	// where nothing listens for one.
	NewCode func(context.Context) (api.Code, error)
	// Forks is another text for each set of runs that a run shares events with: its own events do not show them.
	// nil is for a server without forks.
	Forks func(context.Context, protocol.RunID) (string, error)

	Metrics http.Handler // GET /metrics; nil is none
	// Ready is nil where requests are answered, else why they are not, which only the log is told; nil is always.
	Ready func(context.Context) error
	Log   *slog.Logger // nil discards it
}

// A call is a request that is answered.
type call struct {
	*http.Request
	parameters
	w    http.ResponseWriter
	run  protocol.RunID // of the path
	step string         // of the path, in its written form
}

// A handler gives what a call is answered with, as JSON; nil where it has answered.
type handler = func(*Server, *call) (any, error)

// answer is one with another status than 200.
type answer struct {
	status int
	value  any
}

// route is an entry of the API.
type route struct {
	method, path string
	scope        guard.Scope // "" is open to all
	known        string      // the parameters of the query; "..." is behind one that may be given several times
	handle       handler
}

// anyOther stands for all parameters: they are passed over.
const anyOther = "*"

// routes is the one table of the API; openapi.yaml describes each of them.
var routes = []route{
	{"GET", "/healthz", "", anyOther, health},
	{"GET", "/readyz", "", anyOther, (*Server).ready},
	{"GET", "/metrics", guard.Metrics, anyOther, (*Server).metrics},
	{"GET", "/v1/openapi.json", "", anyOther, (*Server).openapi},
	{"GET", "/v1/info", guard.Read, "", (*Server).info},
	{"POST", "/v1/codes", guard.Admin, "", body(optional, (*Server).newCode)},
	{"GET", "/v1/workflows", guard.Read, "", (*Server).workflows},
	{"GET", "/v1/runs", guard.Read, listed, (*Server).runs},
	{"POST", "/v1/runs", guard.Run, "", body(wanted, (*Server).start)},
	{"GET", "/v1/runs/{id}", guard.Read, "limit before at status role fold", withForks((*Server).run)},
	{"DELETE", "/v1/runs/{id}", guard.Admin, "why dry_run", (*Server).remove},
	{"GET", "/v1/runs/{id}/graph", guard.Read, "", atHead((*Server).graph)},
	{"GET", "/v1/runs/{id}/steps/{step}", guard.Read, "", ofStep(api.Service.Step)},
	{"GET", "/v1/runs/{id}/steps/{step}/messages", guard.Read, "", atHead(ofStep(api.Service.Messages))},
	{"GET", "/v1/runs/{id}/steps/{step}/diff", guard.Read, "", atHead(ofStep(api.Service.VisitDiff))},
	{"GET", "/v1/runs/{id}/steps/{step}/explain", guard.Read, "", atHead(ofStep(api.Service.Explain))},
	{"GET", "/v1/runs/{id}/steps/{step}/artifacts", guard.Read, "after limit", (*Server).artifacts},
	{"GET", "/v1/runs/{id}/steps/{step}/artifact", guard.Read, "path", (*Server).artifact},
	{"GET", "/v1/runs/{id}/steps/{step}/files", guard.Read, "before changed after limit", (*Server).files},
	{"GET", "/v1/runs/{id}/steps/{step}/file", guard.Read, "before path", (*Server).file},
	{"GET", "/v1/runs/{id}/looks", guard.Read, "after limit", (*Server).looks},
	{"GET", "/v1/runs/{id}/diff/{other}", guard.Read, "", (*Server).diff},
	{"GET", "/v1/runs/{id}/explain", guard.Read, "", atHead(ofRun(api.Service.ExplainRun))},
	{"GET", "/v1/runs/{id}/cache", guard.Read, "", ofRun(api.Service.Cache)},
	{"GET", "/v1/runs/{id}/archive", guard.Read, "files", (*Server).archive},
	{"GET", "/v1/runs/{id}/archive/contents", guard.Read, "files", (*Server).contents},
	{"POST", "/v1/runs/{id}/archive/parts", guard.Read, "", body(wanted, (*Server).parts)},
	{"GET", "/v1/runs/{id}/trace", guard.Read, "prompts", (*Server).trace},
	{"GET", "/v1/runs/{id}/verify", guard.Read, "", ofRun(api.Service.Verify)},
	{"GET", "/v1/runs/{id}/cost", guard.Read, "by", (*Server).cost},
	{"GET", "/v1/runs/{id}/tasks", guard.Read, "after limit", (*Server).tasks},
	{"GET", "/v1/runs/{id}/tasks/{step}", guard.Read, "", ofStep(api.Service.Task)},
	{"POST", "/v1/runs/{id}/answer", guard.Answer, "", body(wanted, (*Server).answer)},
	{"POST", "/v1/runs/{id}/cancel", guard.Run, "", body(optional, (*Server).cancel)},
	{"POST", "/v1/runs/{id}/suspend", guard.Run, "", body(optional, (*Server).suspend)},
	{"POST", "/v1/runs/{id}/resume", guard.Run, "", body(optional, (*Server).resume)},
	{"POST", "/v1/runs/{id}/compact", guard.Run, "", body(optional, (*Server).compact)},
	{"POST", "/v1/runs/{id}/fork", guard.Run, "", body(wanted, (*Server).fork)},
	{"POST", "/v1/runs/{id}/messages", guard.Answer, "", body(wanted, (*Server).message)},
	{"POST", ImportPath, guard.Admin, "run agent", (*Server).take},
	{"POST", ImportPath + "/lacking", guard.Admin, "agent", body(wanted, (*Server).lacking)},
	{"GET", "/v1/memories", guard.Read, "", (*Server).scopes},
	{"GET", "/v1/memories/items", guard.Read, "scope tag... all_tags pinned oldest sums after limit", (*Server).memories},
	{"GET", "/v1/memories/items/{memory}", guard.Read, "scope", (*Server).memory},
	{"POST", "/v1/memories/recall", guard.Read, "", toMemory(api.Service.Recall)},
	{"POST", "/v1/memories/remember", guard.Run, "", toMemory(api.Service.Remember)},
	{"POST", "/v1/memories/change", guard.Run, "", toMemory(api.Service.ChangeMemories)},
	{"POST", "/v1/memories/reindex", guard.Run, "", toMemory(reindex)},
	{"GET", "/v1/notifications", guard.Read, "run after limit", (*Server).notifications},
	{"POST", "/v1/notifications/retry", guard.Admin, "", body(wanted, (*Server).retryNotifications)},
	{"GET", "/v1/deletions", guard.Read, "after limit", (*Server).deletions},
	{"GET", "/v1/tables", guard.Read, "after limit", (*Server).tables},
	{"GET", "/v1/tables/{table}", guard.Read, "", (*Server).table},
	{"GET", "/v1/blocks/{cid}", guard.Read, "payload", (*Server).block},
	{"POST", protocol.WebhookPath + "{name}", "", anyOther, (*Server).hook},
	{"GET", "/v1/replay", guard.Read, anyOther, (*Server).replay},
	{"GET", "/v1/sessions/{id}/events", guard.Read, anyOther, (*Server).events},
}

// Public reports whether a request needs no credentials: the page and its parts, the
// description of the API, and the signs of life. None of them shows anything of a run.
func Public(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch p := r.URL.Path; p {
	case "/healthz", "/readyz", "/v1/openapi.json":
		return true
	case "/metrics":
		return false
	default:
		return p != "/v1" && !strings.HasPrefix(p, "/v1/")
	}
}

// Signed reports whether a request is let in by its signature: an event for a webhook.
func Signed(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, protocol.WebhookPath)
}

// hook hands an event to what takes it.
func (s *Server) hook(c *call) (any, error) {
	if s.Hooks == nil {
		return nil, reply.NotFound(c.Request)
	}
	s.Hooks.ServeHTTP(c.w, c.Request)
	return nil, nil
}

// ImportPath takes archives.
const ImportPath = "/v1/archives"

// Upload reports whether the body of a request is an archive: it is read as it comes, and is as long as
// Server.MaxArchive lets it.
func Upload(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == ImportPath
}

// Handler serves the API. It expects requests that were let in: their guard.Identity decides
// what they may do.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	var hooks route
	for _, r := range routes {
		if r.path == protocol.WebhookPath+"{name}" {
			hooks = r
		}
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			if err := s.serve(r, w, req); err != nil {
				w.Header().Del("ETag") // of what could not be answered
				reply.Error(w, err)
			}
		})
	}
	Missing(mux, "GET /v1/openapi.json lists what is")
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.Page == nil {
			reply.Error(w, reply.NotFound(r))
			return
		}
		s.Page.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Signed(r) {
			mux.ServeHTTP(w, r)
			return
		}
		// No credentials were asked for: whatever the path, what answers is what asks for a signature.
		r.SetPathValue("name", strings.TrimPrefix(r.URL.Path, protocol.WebhookPath))
		if err := s.serve(hooks, w, r); err != nil {
			reply.Error(w, err)
		}
	})
}

// serve answers a request of a route.
func (s *Server) serve(r route, w http.ResponseWriter, req *http.Request) (err error) {
	if r.scope != "" {
		if err := guard.Need(req.Context(), r.scope); err != nil {
			return err
		}
	}
	c := &call{Request: req, w: w, run: protocol.RunID(req.PathValue("id"))}
	if c.parameters, err = Query(req, strings.Fields(r.known)...); err != nil {
		return err
	}
	if text := req.PathValue("step"); text != "" {
		id, err := protocol.ParseStepID(text)
		if err != nil {
			return reply.Badf("%v", err)
		}
		c.step = id.String()
	}
	v, err := r.handle(s, c)
	if err != nil || v == nil {
		return err
	}
	a, other := v.(answer)
	if !other {
		a = answer{http.StatusOK, v}
	}
	reply.JSON(w, a.status, a.value)
	return nil
}

// Missing has a mux answer at /v1 and below it for paths that are none, with the advice, and for methods that a path lacks.
func Missing(mux *http.ServeMux, advice string) {
	none := func(w http.ResponseWriter, r *http.Request) {
		reply.Error(w, protocol.Hinted(reply.NotFound(r), advice))
	}
	mux.HandleFunc("/v1", none) // else it is sent on to /v1/
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/v1/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			none(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		reply.Error(w, protocol.ErrMethod.With("", "%s takes %s, not %s", r.URL.Path, strings.Join(allowed, " and "), r.Method))
	})
}
