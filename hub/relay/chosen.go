package relay

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"wf/hub/queue"
	"wf/hub/reply"
	"wf/protocol"
)

// ofWorker serves what belongs to a store and to no run, such as memories: each worker has its own. The
// parameter agent says which worker is meant.
func (h *Hub) ofWorker(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if n := len(query["agent"]); n > 1 {
		return reply.Badf("the parameter %q is given %d times", "agent", n)
	}
	l, err := h.chosen(r.Context(), query.Get("agent"))
	if err != nil {
		w.Header().Set("Retry-After", "1")
		return err
	}
	query.Del("agent")
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	l.forward(w, r)
	return nil
}

// notifications serves those of a worker: of the one that has the run, where they are about one and no worker is named.
func (h *Hub) notifications(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	run := query.Get("run")
	if run == "" || query.Has("agent") {
		return h.ofWorker(w, r)
	}
	if n := len(query["run"]); n > 1 {
		return reply.Badf("the parameter %q is given %d times", "run", n)
	}
	l, err := h.owner(r.Context(), protocol.RunID(run))
	if err != nil {
		w.Header().Set("Retry-After", "1")
		return err
	}
	if r.Method == http.MethodPost { // there it says which worker is meant, and no more
		query.Del("run")
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	l.forward(w, r)
	return nil
}

// chosen is the worker of an id; "" is the only one there is. Workers that are away count as long as they have
// runs, and in the grace period no worker is taken for the only one: what is meant for the store of one worker
// must not be written into that of another.
func (h *Hub) chosen(ctx context.Context, named string) (*link, error) {
	workers, err := h.Registry.List(ctx)
	if err != nil {
		return nil, err
	}
	var fits []queue.Worker
	var ids []string
	for _, x := range workers {
		if x.ID == named || named == "" && (x.Runs > 0 || h.link(x.ID) != nil) {
			fits = append(fits, x)
		}
		ids = append(ids, fmt.Sprintf("%s (%s)", x.ID, x.Name))
	}
	list := strings.Join(ids[:min(10, len(ids))], ", ")
	switch {
	case len(fits) == 0 && named != "":
		return nil, protocol.ErrNotFound.With("name one that the hub knows: "+cmp.Or(list, "there is none yet"), "this hub knows no worker %q", named)
	case named == "" && h.inGracePeriod():
		return nil, fmt.Errorf("the hub has just started, its workers may be on the way; one that is named is asked: %w", protocol.ErrWorkerAway)
	case len(fits) == 0:
		return nil, fmt.Errorf("no worker is connected to the hub: %w", protocol.ErrWorkerAway)
	case len(fits) > 1:
		return nil, protocol.ErrAmbiguous.With("name one of them, with --worker ID or the parameter agent", "each worker has a store of its own, and the hub knows %d: %s", len(fits), list)
	}
	l := h.link(fits[0].ID)
	if l == nil {
		return nil, fmt.Errorf("worker %s (%s): %w", fits[0].ID, fits[0].Name, protocol.ErrWorkerAway)
	}
	return l, nil
}
