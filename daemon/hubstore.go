package daemon

import (
	"context"
	"sync"
	"time"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/hub/relay"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
	"wf/service/query"
)

// hubStore is the part of a store that hubs see.
type hubStore struct {
	s       engine.Store
	catalog compose.Catalog
	pins    *cas.Pins // which runs came from elsewhere
	driving *Supervisor
	settle  func() // returns when what requests have begun until now is driven

	mu     sync.Mutex
	known  map[protocol.RunID]begun
	caps   []string
	looked time.Time
}

// hubView is a hubStore as one hub has heard of it.
type hubView struct {
	*hubStore
	mu   sync.Mutex
	sent uint64 // drives that had ended when runs were listed
}

func newHubStore(of *service.Local, driving *Supervisor) *hubStore {
	return &hubStore{s: of.Store, catalog: of.Catalog, pins: of.Pins(of.Store), driving: driving, settle: of.AwaitMoves, known: map[protocol.RunID]begun{}}
}

// begun is how a run was begun, which never changes.
type begun struct {
	request string         // by which; "" for none
	parent  protocol.RunID // that it is a part of; "" for none
}

// lookForWorkflows is how often the directories of workflows are read for the hub.
const lookForWorkflows = 5 * time.Second

// Caps are the names and files of the workflows that can be started, and their names with their definitions.
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
			h.caps = append(h.caps, f.Name, f.Path, api.Pinned(f.Name, f.CID.String()))
		}
	}
	return h.caps, nil
}

// Runs are all runs with their heads.
func (h *hubView) Runs(ctx context.Context) ([]relay.Run, error) {
	ended, _ := h.driving.ended()
	heads, err := h.s.Heads(ctx, protocol.RunHead(""))
	if err != nil {
		return nil, err
	}
	h.settle()
	h.mu.Lock()
	h.sent = ended
	h.mu.Unlock()
	return h.list(ctx, heads)
}

// list says of each run what a hub is sent.
func (h *hubStore) list(ctx context.Context, heads []cas.Head) ([]relay.Run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	by := make(map[protocol.RunID]cas.Head, len(heads))
	for _, head := range heads {
		run := protocol.RunOf(head.Name)
		by[run] = head
		if _, known := h.known[run]; known {
			continue
		}
		started, err := query.Started(ctx, h.s, run)
		if err != nil {
			return nil, err
		}
		var x begun
		// A fork begins with the event of the run that it was forked from, request and all.
		if started.RequestID != "" && engine.MadeBy(started.RequestID, run) {
			x.request = started.RequestID
		}
		if started.Parent != nil {
			x.parent = started.Parent.Run
		}
		h.known[run] = x
	}
	out := make([]relay.Run, len(heads))
	for i, head := range heads {
		run := protocol.RunOf(head.Name)
		out[i] = relay.Run{ID: run, HeadSeq: head.Seq, HeadCID: head.Link.String(), Foreign: !h.own(ctx, by, run), Busy: h.driving.Drives(run)}
		if !out[i].Foreign { // else no job started it here
			out[i].RequestID = h.known[run].request
		}
	}
	return out, nil
}

// own reports whether a run is the user's own, by what is in memory; a sub-workflow is as the run that it is a part of.
func (h *hubStore) own(ctx context.Context, heads map[protocol.RunID]cas.Head, run protocol.RunID) bool {
	for range deepest {
		head, there := heads[run]
		if noted, err := h.pins.Noted(ctx, head); !there || err != nil || noted {
			return there && err == nil
		}
		run = h.known[run].parent
	}
	return false
}

// deepest is how many runs a run is a part of at most.
const deepest = 64

// AwaitChange returns with every commit, with the end of every drive, and every few seconds for what lies in files.
func (h *hubView) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	ended, next := h.driving.ended()
	h.mu.Lock()
	sent := h.sent
	h.mu.Unlock()
	if sent != ended {
		return since, nil
	}
	waits, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-next:
			stop()
		case <-waits.Done():
		}
	}()
	now, err := awaitChange(waits, h.s, since, lookForWorkflows)
	if err != nil && ctx.Err() == nil && waits.Err() != nil {
		return since, nil
	}
	return now, err
}
