package server

import (
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

	Name    string // of the agent
	Version string // of the binary

	Replay http.Handler // GET /v1/replay, a WebSocket
	Events http.Handler // GET /v1/sessions/{id}/events
	Page   http.Handler // everything that is not the API; nil is nothing

	// MaxArchive is the most bytes of an archive that is imported; 0 is 4 GiB.
	MaxArchive int64

	// NewCode makes a one-time code for a browser; nil where nothing listens for one.
	NewCode func() (api.Code, error)
}

// route is an entry of the API.
type route struct {
	method, path string
	scope        guard.Scope // "" is open to all
	handle       func(*Server, http.ResponseWriter, *http.Request) error
}

// routes is the one table of the API; openapi.yaml describes each of them.
var routes = []route{
	{"GET", "/healthz", "", (*Server).health},
	{"GET", "/v1/openapi.json", "", (*Server).openapi},
	{"GET", "/v1/info", guard.Read, (*Server).info},
	{"POST", "/v1/codes", guard.Admin, (*Server).newCode},
	{"GET", "/v1/workflows", guard.Read, (*Server).workflows},
	{"GET", "/v1/runs", guard.Read, (*Server).runs},
	{"POST", "/v1/runs", guard.Run, (*Server).start},
	{"GET", "/v1/runs/{id}", guard.Read, (*Server).run},
	{"GET", "/v1/runs/{id}/graph", guard.Read, (*Server).graph},
	{"GET", "/v1/runs/{id}/steps/{step}", guard.Read, (*Server).step},
	{"GET", "/v1/runs/{id}/steps/{step}/messages", guard.Read, ofStep(api.Service.Messages)},
	{"GET", "/v1/runs/{id}/steps/{step}/diff", guard.Read, ofStep(api.Service.VisitDiff)},
	{"GET", "/v1/runs/{id}/steps/{step}/explain", guard.Read, ofStep(api.Service.Explain)},
	{"GET", "/v1/runs/{id}/diff/{other}", guard.Read, (*Server).diff},
	{"GET", "/v1/runs/{id}/cache", guard.Read, whole(api.Service.Cache)},
	{"GET", "/v1/runs/{id}/archive", guard.Read, (*Server).archive},
	{"GET", "/v1/runs/{id}/verify", guard.Read, whole(api.Service.Verify)},
	{"GET", "/v1/runs/{id}/cost", guard.Read, (*Server).cost},
	{"GET", "/v1/runs/{id}/tasks", guard.Read, (*Server).tasks},
	{"GET", "/v1/runs/{id}/tasks/{step}", guard.Read, (*Server).task},
	{"POST", "/v1/runs/{id}/answer", guard.Answer, (*Server).answer},
	{"POST", "/v1/runs/{id}/cancel", guard.Run, (*Server).cancel},
	{"POST", "/v1/runs/{id}/suspend", guard.Run, plain((*Server).suspend)},
	{"POST", "/v1/runs/{id}/resume", guard.Run, (*Server).resume},
	{"POST", "/v1/runs/{id}/compact", guard.Run, plain((*Server).compact)},
	{"POST", "/v1/runs/{id}/fork", guard.Run, (*Server).fork},
	{"POST", "/v1/runs/{id}/messages", guard.Answer, (*Server).message},
	{"POST", ImportPath, guard.Admin, (*Server).take},
	{"GET", "/v1/memories", guard.Read, own((*Server).scopes)},
	{"GET", "/v1/memories/items", guard.Read, own((*Server).memories)},
	{"GET", "/v1/memories/items/{memory}", guard.Read, own((*Server).memory)},
	{"POST", "/v1/memories/recall", guard.Read, own(toMemory(api.Service.Recall))},
	{"POST", "/v1/memories/remember", guard.Run, own(toMemory(api.Service.Remember))},
	{"POST", "/v1/memories/change", guard.Run, own(toMemory(api.Service.ChangeMemories))},
	{"POST", "/v1/memories/reindex", guard.Run, own(toMemory(reindex))},
	{"GET", "/v1/blocks/{cid}", guard.Read, (*Server).block},
	{"GET", "/v1/replay", guard.Read, (*Server).replay},
	{"GET", "/v1/sessions/{id}/events", guard.Read, (*Server).events},
}

// Public reports whether a request needs no credentials: the page and its parts, the
// description of the API, and the sign of life. None of them shows anything of a run.
func Public(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch p := r.URL.Path; p {
	case "/healthz", "/v1/openapi.json":
		return true
	default:
		return p != "/v1" && !strings.HasPrefix(p, "/v1/")
	}
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
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			if r.scope != "" {
				if err := guard.Need(req.Context(), r.scope); err != nil {
					reply.Error(w, err)
					return
				}
			}
			if err := r.handle(s, w, req); err != nil {
				reply.Error(w, err)
			}
		})
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) { s.missing(mux, w, r) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.Page == nil {
			reply.Error(w, notFound(r))
			return
		}
		s.Page.ServeHTTP(w, r)
	})
	return mux
}

func notFound(r *http.Request) error {
	return &protocol.Error{Code: protocol.ErrNotFound.Code, Message: "nothing is served at " + r.URL.Path, Hint: "GET /v1/openapi.json lists what is"}
}

// missing answers for paths of the API that are none, and for methods that a path lacks.
func (s *Server) missing(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/v1/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		reply.Error(w, notFound(r))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	reply.JSON(w, http.StatusMethodNotAllowed, reply.FailureOf(reply.Badf("%s takes %s, not %s", r.URL.Path, strings.Join(allowed, " and "), r.Method)))
}
