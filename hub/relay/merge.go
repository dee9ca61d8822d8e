package relay

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"wf/api"
	"wf/hub/reply"
	"wf/hub/server"
	"wf/protocol"
)

// A page is what one worker answered for a list.
type page struct {
	link     *link
	Items    []json.RawMessage          `json:"items"`
	Searched *api.Searched              `json:"searched"`
	Counts   map[protocol.RunStatus]int `json:"counts"`
}

// gather asks all workers at once. Those that do not answer in time, or that have stalled
// already, are named in missing: one of them must not hold up the page of all.
func (h *Hub) gather(ctx context.Context, path func(*link) string) (pages []page, missing []string) {
	ctx, cancel := context.WithTimeout(ctx, h.Asking)
	defer cancel()
	links := h.all()
	protocol.Sort(links, func(a, b *link) int { return strings.Compare(a.id, b.id) })
	got := make([]*page, len(links))
	var all sync.WaitGroup
	for i, l := range links {
		p := path(l)
		if p == "" {
			got[i] = &page{link: l}
			continue
		}
		if l.stalled() {
			continue
		}
		all.Go(func() {
			a, err := l.get(ctx, p)
			one := &page{link: l}
			if err != nil || a.status != http.StatusOK || json.Unmarshal(a.body, one) != nil {
				h.Log.Warn("no list from a worker", "worker", l.id, "path", p, "error", err)
				return
			}
			got[i] = one
		})
	}
	all.Wait()
	missing = []string{}
	for i, p := range got {
		if p == nil {
			missing = append(missing, links[i].id)
		} else {
			pages = append(pages, *p)
		}
	}
	return pages, missing
}

// away adds the workers that are not connected here and had runs when they were: those are not listed.
func (h *Hub) away(ctx context.Context, missing []string, only string) ([]string, error) {
	workers, err := h.Registry.List(ctx)
	for _, a := range workers {
		if a.Runs > 0 && (only == "" || only == a.ID) && h.link(a.ID) == nil && !slices.Contains(missing, a.ID) {
			missing = append(missing, a.ID)
		}
	}
	slices.Sort(missing)
	return missing, err
}

// row is a run of a list, with the worker that has it.
type row struct {
	worker  string
	id      string
	updated string // RFC 3339 of one length, and so ordered as text
	json    json.RawMessage
}

// owns reports whether a run that a worker lists may be shown as its own: not one that is known to
// be another worker's.
func (h *Hub) owns(ctx context.Context, x row) bool {
	p, err := h.Pointers.Get(ctx, protocol.RunID(x.id))
	return err != nil || p.Worker == x.worker
}

// newRow adds the worker to a run of its list.
func newRow(l *link, raw json.RawMessage) (row, bool) {
	var fields map[string]json.RawMessage
	var r struct{ ID, Updated string }
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(raw, &r) != nil || fields == nil {
		return row{}, false
	}
	worker, err := json.Marshal(l.id)
	fields["agent"] = worker
	b, bad := json.Marshal(fields)
	return row{l.id, r.ID, r.Updated, b}, err == nil && bad == nil
}

// runs serves GET /v1/runs: the runs of all workers, the one that moved last first. A page of
// the hub goes on where the pages of the workers stopped: before holds a place for each.
func (h *Hub) runs(w http.ResponseWriter, r *http.Request) error {
	asks, err := server.ParseQuery(r, "agent")
	if err != nil {
		return err
	}
	places, err := parsePlaces(asks.Before)
	if err != nil {
		return err
	}
	limit, query := asks.Limit, r.URL.Query()
	only := query.Get("agent")
	query.Del("agent")
	pages, missing := h.gather(r.Context(), func(l *link) string {
		place, known := places[l.id]
		if only != "" && l.id != only || known && place == "" { // its last page was read
			return ""
		}
		query.Del("before")
		if place != "" {
			query.Set("before", place)
		}
		return "/v1/runs?" + query.Encode()
	})
	var rows []row
	asked := map[string]int{}
	for _, p := range pages {
		for _, raw := range p.Items {
			if x, ok := newRow(p.link, raw); ok {
				rows = append(rows, x)
				asked[p.link.id]++
			}
		}
	}
	protocol.Sort(rows, func(a, b row) int { return strings.Compare(b.updated, a.updated) })
	rows = rows[:min(limit, len(rows))]
	items, next := []json.RawMessage{}, maps.Clone(places)
	for _, x := range rows {
		if h.owns(r.Context(), x) { // others are passed over, and read all the same
			items = append(items, x.json)
		}
		next[x.worker] = api.RowPlace(x.updated, protocol.RunID(x.id))
		asked[x.worker]--
	}
	more := false
	for _, p := range pages {
		switch left := asked[p.link.id]; {
		case left > 0 || len(p.Items) >= limit:
			more = true
		case only == "" || p.link.id == only:
			next[p.link.id] = "" // nothing behind what was shown
		}
	}
	if missing, err = h.away(r.Context(), missing, only); err != nil {
		return err
	}
	out := map[string]any{"schema": "wf.runs/v1", "items": items, "next": nil, "missing": missing}
	if more {
		out["next"] = next.String()
	}
	if asks.Search != "" || asks.Person != "" {
		out["searched"] = searched(pages)
	}
	if asks.Counts && asks.Before == "" {
		out["counts"] = counts(pages)
	}
	reply.JSON(w, http.StatusOK, out)
	return nil
}

// searched is how far the runs of all workers are searched.
func searched(pages []page) (sum api.Searched) {
	for _, p := range pages {
		x := p.Searched
		if x == nil || x.Runs+x.Behind == 0 {
			continue
		}
		if first := sum.Runs+sum.Behind == 0; first || x.Behind > 0 && (sum.Behind == 0 || x.UpTo < sum.UpTo) || x.Behind == 0 && sum.Behind == 0 && x.UpTo > sum.UpTo {
			sum.UpTo = x.UpTo // of those that are behind the earliest, else the newest
		}
		sum.Runs, sum.Behind = sum.Runs+x.Runs, sum.Behind+x.Behind
	}
	return sum
}

// counts are the runs of all workers by status.
func counts(pages []page) map[protocol.RunStatus]int {
	sum := map[protocol.RunStatus]int{}
	for _, p := range pages {
		for status, n := range p.Counts {
			sum[status] += n
		}
	}
	return sum
}

// places are how far the list of each worker was read: a place (api.RowPlace), or "" for the end.
type places map[string]string

func parsePlaces(s string) (places, error) {
	p := places{}
	if s == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return nil, reply.Badf("before=%.100q: want the next of an earlier list of this hub", s)
	}
	return p, nil
}

func (p places) String() string {
	b, err := json.Marshal(p)
	if err != nil {
		return "" // strings can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// workflows serves GET /v1/workflows: what can be started at any worker, by name and definition, with the
// workers that have it.
func (h *Hub) workflows(w http.ResponseWriter, r *http.Request) error {
	pages, missing := h.gather(r.Context(), func(*link) string { return "/v1/workflows" })
	type defined struct{ name, definition string }
	merged := map[defined]map[string]any{}
	definitions := map[string]int{}
	for _, p := range pages {
		for _, raw := range p.Items {
			var fields map[string]any
			if json.Unmarshal(raw, &fields) != nil || fields == nil {
				continue
			}
			var is defined
			is.name, _ = fields["name"].(string)
			is.definition, _ = fields["definition"].(string)
			if old := merged[is]; old != nil {
				old["agents"] = append(old["agents"].([]string), p.link.id)
				continue
			}
			fields["agents"] = []string{p.link.id}
			merged[is] = fields
			definitions[is.name]++
		}
	}
	items := make([]map[string]any, 0, len(merged))
	for _, is := range slices.SortedFunc(maps.Keys(merged), func(a, b defined) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.definition, b.definition))
	}) {
		x := merged[is]
		if n := definitions[is.name]; n > 1 && x["problem"] == "" {
			x["problem"] = fmt.Sprintf("the workers of this hub have %d definitions of it, and one that starts it by its name gets any of them: this one, of %s, is started by wf run %s",
				n, strings.Join(x["agents"].([]string), ", "), protocol.ShellWord(api.Pinned(is.name, is.definition)))
		}
		items = append(items, x)
	}
	reply.JSON(w, http.StatusOK, map[string]any{"schema": "wf.workflows/v1", "items": items, "missing": missing})
	return nil
}

func escape(s string) string { return url.PathEscape(s) }
