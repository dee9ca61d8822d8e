package daemon

import (
	"context"
	"sync"
	"time"
	"wf/cas"
	"wf/engine"
	"wf/hub/relay"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// hubStore is the part of a store that a hub sees.
type hubStore struct {
	s       *cas.Store
	catalog compose.Catalog

	mu       sync.Mutex
	requests map[protocol.RunID]string // request ids of runs, which never change
	caps     []string
	looked   time.Time
}

// lookForWorkflows is how often the directories of workflows are read for the hub.
const lookForWorkflows = 5 * time.Second

// Caps are the names and files of the workflows that can be started.
func (h *hubStore) Caps(context.Context) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.looked) < lookForWorkflows {
		return h.caps, nil
	}
	all, err := h.catalog.List()
	if err != nil {
		return nil, err
	}
	h.caps, h.looked = nil, time.Now()
	for _, f := range all {
		if f.Problem == "" {
			h.caps = append(h.caps, f.Name, f.Path)
		}
	}
	return h.caps, nil
}

// Runs are all runs with their heads.
func (h *hubStore) Runs(ctx context.Context) ([]relay.Run, error) {
	heads, err := h.s.Heads(ctx, protocol.RunHead(""))
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.requests == nil {
		h.requests = map[protocol.RunID]string{}
	}
	out := make([]relay.Run, 0, len(heads))
	for _, head := range heads {
		run := protocol.RunOf(head.Name)
		request, known := h.requests[run]
		if !known {
			started, err := query.Started(ctx, h.s, run)
			if err != nil {
				return nil, err
			}
			// A fork begins with the event of the run that it was forked from, request and all.
			if started.RequestID != "" && engine.RequestRun(started.RequestID) == run {
				request = started.RequestID
			}
			h.requests[run] = request
		}
		out = append(out, relay.Run{ID: run, HeadSeq: head.Seq, HeadCID: head.Link.String(), RequestID: request})
	}
	return out, nil
}

// AwaitChange returns with every commit, and every few seconds for what lies in files.
func (h *hubStore) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	wait, stop := context.WithTimeout(ctx, lookForWorkflows)
	defer stop()
	now, err := h.s.AwaitChange(wait, since)
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return since, nil
	}
	return now, err
}
