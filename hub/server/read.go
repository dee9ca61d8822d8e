package server

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

func health(*Server, *call) (any, error) { return Health{"wf.health/v1", true}, nil }

// Health is wf.health/v1: the server answers.
type Health struct {
	Schema string `json:"schema"`
	OK     bool   `json:"ok"`
}

// Ready is wf.ready/v1: whether requests are answered. Why not is not told: anyone may ask.
type Ready struct {
	Schema string `json:"schema"`
	Ready  bool   `json:"ready"`
}

func (s *Server) ready(c *call) (any, error) {
	c.w.Header().Set("Cache-Control", "no-store")
	if s.Ready != nil {
		if err := s.Ready(c.Context()); err != nil {
			cmp.Or(s.Log, slog.New(slog.DiscardHandler)).Debug("not ready", "why", err)
			return answer{http.StatusServiceUnavailable, Ready{"wf.ready/v1", false}}, nil
		}
	}
	return Ready{"wf.ready/v1", true}, nil
}

func (s *Server) metrics(c *call) (any, error) { return s.mounted(c, s.Metrics) }

// Info is wf.info/v1: what is at the other end, and what the asker may do there.
type Info struct {
	Schema  string        `json:"schema"`
	Kind    string        `json:"kind"` // agent, or hub
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Scopes  []guard.Scope `json:"scopes"`
}

func (s *Server) info(c *call) (any, error) {
	id, _ := guard.Of(c.Context())
	return Info{"wf.info/v1", cmp.Or(s.Kind, "agent"), s.Name, s.Version, id.Scopes}, nil
}

func (s *Server) newCode(c *call, _ *struct{}) (any, error) {
	if s.NewCode == nil {
		return nil, protocol.ErrNotFound.With("wf serve --listen 127.0.0.1:8765 listens on one", "there is no address that a browser could open")
	}
	code, err := s.NewCode(c.Context())
	return answer{http.StatusCreated, code}, err
}

// Workflows is wf.workflows/v1: what can be started, by name.
type Workflows struct {
	Schema  string         `json:"schema"`
	Items   []api.Workflow `json:"items"`
	Missing []string       `json:"missing,omitempty" at:"hub"` // workers that did not answer in time
}

func (s *Server) workflows(c *call) (any, error) {
	items, err := s.Service.Workflows(c.Context())
	if items == nil {
		items = []api.Workflow{}
	}
	return Workflows{Schema: "wf.workflows/v1", Items: items}, err
}

// listed are the parameters of GET /v1/runs.
const listed = "status workflow type tag q limit before all search since until cost_min cost_max tokens_min tokens_max person counts"

// ParseQuery reads what GET /v1/runs is asked for; an error wraps protocol.ErrBadRequest. more are
// parameters that the caller knows besides.
func ParseQuery(r *http.Request, more ...string) (api.Query, error) {
	p, err := Query(r, append(strings.Fields(listed), more...)...)
	if err != nil {
		return api.Query{}, err
	}
	q := api.Query{Status: protocol.RunStatus(p.text("status")), Workflow: p.text("workflow"), Type: p.text("type"), Tag: p.text("tag"), Text: p.text("q"),
		Before: p.text("before")}
	if q.Status != "" && !slices.Contains(api.QueryStatuses, q.Status) {
		return q, reply.Badf("status=%q: want one of %v", q.Status, api.QueryStatuses)
	}
	if q.Limit, err = p.number("limit", 1, api.MaxLimit, api.DefaultLimit); err != nil {
		return q, err
	}
	if q.All, err = p.yes("all"); err != nil {
		return q, err
	}
	return q, p.filters(&q)
}

// searchMax is the length of a search, and of the name of a person, in bytes.
const searchMax = 1000

// filters reads what chooses runs by what was said in them, and by numbers.
func (p parameters) filters(q *api.Query) (err error) {
	q.Search, q.Person = p.text("search"), p.text("person")
	for _, name := range []string{"search", "person"} {
		if n := len(p.text(name)); n > searchMax {
			return reply.Badf("%s has %d bytes: want at most %d", name, n, searchMax)
		}
	}
	if q.Search != "" {
		if _, err := api.ReadSearch(q.Search); err != nil {
			return err
		}
	}
	for name, at := range map[string]*int64{"since": &q.Since, "until": &q.Until} {
		if text := p.text(name); text != "" {
			if *at, err = protocol.TimeOrAgo(text, time.Now()); err != nil {
				return reply.Badf("%s=%v", name, err)
			}
		}
	}
	for name, at := range map[string]**float64{"cost_min": &q.CostMin, "cost_max": &q.CostMax} {
		if text := p.text(name); text != "" {
			usd, err := strconv.ParseFloat(text, 64)
			if err != nil || !(usd >= 0) || math.IsInf(usd, 0) {
				return reply.Badf("%s=%.100q: want US dollars, as in 0.25", name, text)
			}
			*at = &usd
		}
	}
	for name, at := range map[string]**int64{"tokens_min": &q.TokensMin, "tokens_max": &q.TokensMax} {
		if text := p.text(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return reply.Badf("%s=%.100q: want a number of tokens", name, text)
			}
			*at = &n
		}
	}
	q.Counts, err = p.yes("counts")
	return err
}

func (s *Server) runs(c *call) (any, error) {
	q, err := ParseQuery(c.Request)
	if err != nil {
		return nil, err
	}
	moved, err := s.Feed.Changes(c.Context())
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", s.Version, c.URL.RawQuery)
	if unchanged(c.w, c.Request, fmt.Sprintf("%x-%x", moved, h.Sum64()), untilItMoves) {
		return nil, nil
	}
	page, err := s.Service.List(c.Context(), q)
	if err != nil {
		return nil, err
	}
	behind := page.Searched != nil && page.Searched.Behind > 0
	if behind || q.Status == api.InterruptedRuns || q.Since > 0 || q.Until > 0 || slices.ContainsFunc(page.Items, func(x api.Row) bool { return !x.Settled() }) {
		c.w.Header().Del("ETag") // it changes though no run moves
	}
	return page, nil
}

func (s *Server) run(c *call) (any, error) {
	win := api.Window{Bytes: api.MaxTexts}
	var err error
	if win.Limit, err = c.number("limit", 1, api.MaxSteps, api.MaxSteps); err != nil {
		return nil, err
	}
	before, err := c.number("before", 1, protocol.MaxSafeInt, 0)
	if err != nil {
		return nil, err
	}
	at, err := c.number("at", 1, protocol.MaxSafeInt, 0)
	if err != nil {
		return nil, err
	}
	fold, err := c.number("fold", 1, api.MaxSteps, 0)
	if err != nil {
		return nil, err
	}
	win.Fold = fold
	win.Before, win.At, win.Role = protocol.Seq(before), protocol.Seq(at), c.text("role")
	if text := c.text("status"); text != "" {
		win.States = strings.Split(text, ",")
	}
	for _, state := range win.States {
		if !slices.Contains(api.StepStates, state) {
			return nil, reply.Badf("status=%.100q: want one or several of %s, separated by commas", state, strings.Join(api.StepStates, ", "))
		}
	}
	v, err := s.Service.Run(c.Context(), c.run, win)
	if err == nil && !v.Settled() {
		c.w.Header().Del("ETag")
	}
	return v, err
}

// atHead answers what nothing but an event of its run changes, unless the client holds it already.
func atHead(handle handler) handler {
	return tagged(handle, func(*Server, *call) (string, error) { return "", nil })
}

// withForks is atHead for what a fork of the run changes too.
func withForks(handle handler) handler {
	return tagged(handle, func(s *Server, c *call) (string, error) {
		if s.Forks == nil {
			return "", nil
		}
		forks, err := s.Forks(c.Context(), c.run)
		return "-" + forks, err
	})
}

func tagged(handle handler, more func(*Server, *call) (string, error)) handler {
	return func(s *Server, c *call) (any, error) {
		head, _, err := s.Feed.Tip(c.Context(), c.run)
		if err != nil {
			return nil, err
		}
		tag, err := more(s, c)
		if err != nil || unchanged(c.w, c.Request, head.String()+"-"+s.Version+tag, untilItMoves) {
			return nil, err
		}
		return handle(s, c)
	}
}

func (s *Server) graph(c *call) (any, error) {
	svg, err := s.Service.Graph(c.Context(), c.run)
	if err == nil {
		// A picture looked at by itself has its style within.
		c.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		reply.Bytes(c.w, http.StatusOK, "image/svg+xml", svg)
	}
	return nil, err
}

// ofStep answers for one visit.
func ofStep[T any](get func(api.Service, context.Context, protocol.RunID, string) (T, error)) handler {
	return func(s *Server, c *call) (any, error) { return get(s.Service, c.Context(), c.run, c.step) }
}

// ofRun answers for one run, always anew: what lies on disk and what calls cost may have changed.
func ofRun[T any](get func(api.Service, context.Context, protocol.RunID) (T, error)) handler {
	return func(s *Server, c *call) (any, error) { return get(s.Service, c.Context(), c.run) }
}

func (s *Server) diff(c *call) (any, error) {
	return s.Service.Diff(c.Context(), c.run, protocol.RunID(c.PathValue("other")))
}

func (s *Server) cost(c *call) (any, error) {
	by := cmp.Or(c.text("by"), "role")
	if !slices.Contains(api.CostGroups, by) {
		return nil, reply.Badf("by=%q: want %s", by, strings.Join(api.CostGroups, ", "))
	}
	return s.Service.Cost(c.Context(), c.run, by)
}

func (s *Server) replay(c *call) (any, error) { return s.mounted(c, s.Replay) }
func (s *Server) events(c *call) (any, error) { return s.mounted(c, s.Events) }

func (s *Server) mounted(c *call, h http.Handler) (any, error) {
	if h == nil {
		return nil, reply.NotFound(c.Request)
	}
	h.ServeHTTP(c.w, c.Request)
	return nil, nil
}
