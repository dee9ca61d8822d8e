package relay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"wf/hub/reply"
	"wf/protocol"
)

// take serves POST /v1/archives: the archive goes to the worker that the client names, else to the only one that
// is connected, as it comes. The hub keeps nothing of it.
func (h *Hub) take(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if len(query["agent"]) > 1 {
		return reply.Badf("the parameter %q is given %d times", "agent", len(query["agent"]))
	}
	l, err := h.taker(query.Get("agent"))
	if err != nil {
		return err
	}
	query.Del("agent")
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	l.forward(w, r)
	return nil
}

// taker is the worker of an id, or the only one where none is given.
func (h *Hub) taker(id string) (*link, error) {
	if id != "" {
		if l := h.link(id); l != nil {
			return l, nil
		}
		return nil, fmt.Errorf("worker %.140s: %w", id, protocol.ErrWorkerAway)
	}
	links := h.all()
	switch len(links) {
	case 0:
		return nil, fmt.Errorf("no worker is connected: %w", protocol.ErrWorkerAway)
	case 1:
		return links[0], nil
	}
	ids := make([]string, len(links))
	for i, l := range links {
		ids[i] = l.id
	}
	slices.Sort(ids)
	return nil, protocol.ErrAmbiguous.With("name the one whose store is to hold the run: --worker ID, or agent=ID", "%d workers are connected: %s", len(ids), strings.Join(ids[:min(10, len(ids))], ", "))
}
