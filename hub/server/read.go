package server

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	reply.JSON(w, http.StatusOK, Healthy)
	return nil
}

// Health is wf.health/v1: the server answers.
type Health struct {
	Schema string `json:"schema"`
	OK     bool   `json:"ok"`
}

// Healthy is what a server that answers says.
var Healthy = Health{"wf.health/v1", true}

// Info is wf.info/v1: what is at the other end, and what the asker may do there.
type Info struct {
	Schema  string        `json:"schema"`
	Kind    string        `json:"kind"` // agent, or hub
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Scopes  []guard.Scope `json:"scopes"`
}

func (s *Server) info(w http.ResponseWriter, r *http.Request) error {
	id, _ := guard.Of(r.Context())
	reply.JSON(w, http.StatusOK, Info{"wf.info/v1", "agent", s.Name, s.Version, id.Scopes})
	return nil
}

func (s *Server) newCode(w http.ResponseWriter, r *http.Request) error {
	if err := decode(r, &struct{}{}, true); err != nil {
		return err
	}
	if s.NewCode == nil {
		return &protocol.Error{Code: protocol.ErrNotFound.Code, Message: "there is no address that a browser could open",
			Hint: "wf serve --listen 127.0.0.1:8765 listens on one"}
	}
	code, err := s.NewCode()
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusCreated, code)
	return nil
}

// Workflows is wf.workflows/v1: what can be started, by name.
type Workflows struct {
	Schema  string         `json:"schema"`
	Items   []api.Workflow `json:"items"`
	Missing []string       `json:"missing,omitempty" at:"hub"` // workers that did not answer in time
}

func (s *Server) workflows(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	items, err := s.Service.Workflows(r.Context())
	if err != nil {
		return err
	}
	if items == nil {
		items = []api.Workflow{}
	}
	reply.JSON(w, http.StatusOK, Workflows{Schema: "wf.workflows/v1", Items: items})
	return nil
}

// statuses a list of runs can be asked for.
var statuses = []protocol.RunStatus{protocol.Running, protocol.Waiting, protocol.Suspended, protocol.Done, protocol.Failed, protocol.Cancelled}

// ParseQuery reads what GET /v1/runs is asked for; an error wraps protocol.ErrBadRequest. more are
// parameters that the caller knows besides.
func ParseQuery(r *http.Request, more ...string) (api.Query, error) {
	p, err := query(r, append([]string{"status", "workflow", "tag", "q", "limit", "before", "all"}, more...)...)
	if err != nil {
		return api.Query{}, err
	}
	q := api.Query{Status: protocol.RunStatus(p.text("status")), Workflow: p.text("workflow"), Tag: p.text("tag"), Text: p.text("q"),
		Before: protocol.RunID(p.text("before"))}
	if q.Status != "" && !slices.Contains(statuses, q.Status) {
		return q, reply.Badf("status=%q: want one of %v", q.Status, statuses)
	}
	if q.Limit, err = p.number("limit", 1, api.MaxLimit, api.DefaultLimit); err != nil {
		return q, err
	}
	q.All, err = p.yes("all")
	return q, err
}

func (s *Server) runs(w http.ResponseWriter, r *http.Request) error {
	q, err := ParseQuery(r)
	if err != nil {
		return err
	}
	moved, err := s.Feed.Changes(r.Context())
	if err != nil {
		return err
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", s.Version, r.URL.RawQuery)
	if unchanged(w, r, fmt.Sprintf("%x-%x", moved, h.Sum64())) {
		return nil
	}
	page, err := s.Service.List(r.Context(), q)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(page.Items, func(x api.Row) bool { return !x.Settled() }) {
		w.Header().Del("ETag")
	}
	reply.JSON(w, http.StatusOK, page)
	return nil
}

func (s *Server) run(w http.ResponseWriter, r *http.Request) error {
	p, err := query(r, "limit", "before", "at")
	if err != nil {
		return err
	}
	win := api.Window{Bytes: api.MaxTexts}
	if win.Limit, err = p.number("limit", 1, api.MaxSteps, api.MaxSteps); err != nil {
		return err
	}
	before, err := p.number("before", 1, protocol.MaxSafeInt, 0)
	if err != nil {
		return err
	}
	at, err := p.number("at", 1, protocol.MaxSafeInt, 0)
	if err != nil {
		return err
	}
	win.Before, win.At = protocol.Seq(before), protocol.Seq(at)
	if done, err := s.held(w, r, "limit", "before", "at"); done || err != nil {
		return err
	}
	v, err := s.Service.Run(r.Context(), runOf(r), win)
	if err != nil {
		return err
	}
	if !v.Settled() {
		w.Header().Del("ETag")
	}
	reply.JSON(w, http.StatusOK, v)
	return nil
}

// held answers for a run that has not moved since the client read it.
func (s *Server) held(w http.ResponseWriter, r *http.Request, known ...string) (bool, error) {
	if _, err := query(r, known...); err != nil {
		return false, err
	}
	head, _, err := s.Feed.Tip(r.Context(), runOf(r))
	if err != nil {
		return false, err
	}
	return unchanged(w, r, head.String()+"-"+s.Version), nil
}

func (s *Server) graph(w http.ResponseWriter, r *http.Request) error {
	if done, err := s.held(w, r); done || err != nil {
		return err
	}
	svg, err := s.Service.Graph(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	// A picture looked at by itself has its style within.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	reply.Bytes(w, http.StatusOK, "image/svg+xml", svg)
	return nil
}

func (s *Server) step(w http.ResponseWriter, r *http.Request) error {
	step, err := stepOf(r)
	if err != nil {
		return err
	}
	if _, err := query(r); err != nil {
		return err
	}
	v, err := s.Service.Step(r.Context(), runOf(r), step)
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, v)
	return nil
}

// ofStep answers for one visit.
func ofStep[T any](get func(api.Service, context.Context, protocol.RunID, string) (T, error)) func(*Server, http.ResponseWriter, *http.Request) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		step, err := stepOf(r)
		if err != nil {
			return err
		}
		if done, err := s.held(w, r); done || err != nil {
			return err
		}
		v, err := get(s.Service, r.Context(), runOf(r), step)
		if err != nil {
			return err
		}
		reply.JSON(w, http.StatusOK, v)
		return nil
	}
}

// whole answers for one run, always anew: what lies on disk and what calls cost may have changed.
func whole[T any](get func(api.Service, context.Context, protocol.RunID) (T, error)) func(*Server, http.ResponseWriter, *http.Request) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		if _, err := query(r); err != nil {
			return err
		}
		v, err := get(s.Service, r.Context(), runOf(r))
		if err != nil {
			return err
		}
		reply.JSON(w, http.StatusOK, v)
		return nil
	}
}

func (s *Server) diff(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	d, err := s.Service.Diff(r.Context(), runOf(r), protocol.RunID(r.PathValue("other")))
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, d)
	return nil
}

func (s *Server) cost(w http.ResponseWriter, r *http.Request) error {
	p, err := query(r, "by")
	if err != nil {
		return err
	}
	by := p.text("by")
	if by == "" {
		by = "role"
	}
	if !slices.Contains(api.CostGroups, by) {
		return reply.Badf("by=%q: want %s", by, strings.Join(api.CostGroups, ", "))
	}
	v, err := s.Service.Cost(r.Context(), runOf(r), by)
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, v)
	return nil
}

// Media types of blocks: https://www.iana.org/assignments/media-types, vnd.ipld.
const (
	mediaCBOR = "application/vnd.ipld.dag-cbor"
	mediaRaw  = "application/vnd.ipld.raw"
)

// codecCBOR is DAG-CBOR in a CID.
const codecCBOR = 0x71

func (s *Server) block(w http.ResponseWriter, r *http.Request) error {
	p, err := query(r, "payload")
	if err != nil {
		return err
	}
	payload, err := p.yes("payload")
	if err != nil {
		return err
	}
	l, err := protocol.ParseLink(r.PathValue("cid"))
	if err != nil {
		return reply.Badf("%v", err)
	}
	read, tag := s.Feed.Block, l.String()
	if payload {
		read, tag = func(ctx context.Context, l protocol.Link) ([]byte, error) {
			return protocol.ReadPayload(ctx, s.Feed, l)
		}, tag+".payload"
	}
	b, err := read(r.Context(), l)
	if err != nil {
		return err
	}
	if unchanged(w, r, tag) {
		return nil
	}
	media := mediaRaw
	if l.CID().Prefix().Codec == codecCBOR && !payload {
		media = mediaCBOR
	}
	// A block never changes; it is shown to nobody else, and never as a page of its own.
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	reply.Bytes(w, http.StatusOK, media, b)
	return nil
}

func (s *Server) replay(w http.ResponseWriter, r *http.Request) error {
	return s.mounted(w, r, s.Replay)
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	return s.mounted(w, r, s.Events)
}

func (s *Server) mounted(w http.ResponseWriter, r *http.Request, h http.Handler) error {
	if h == nil {
		return notFound(r)
	}
	h.ServeHTTP(w, r)
	return nil
}
