package relay

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"wf/hub/internal/socketend"
	"wf/hub/lists"
	"wf/hub/queue"
	"wf/protocol"
)

// What a hub tells of lists comes from itself and from its workers, of which each is asked once for all clients:
//
//	queue, registry ─► look ──────────────────────────┐
//	worker a ◄── list_request ── list_changed ────────┼─► Board ─► clients
//	worker b of an older version ◄── GET, every 3 s ──┘
var (
	ownLists    = []protocol.List{protocol.ListAgents, protocol.ListQueue}
	workerLists = []protocol.List{protocol.ListRuns, protocol.ListWorkflows, protocol.ListTables, protocol.ListNotifications, protocol.ListDeletions}
)

const (
	lookEvery = time.Second     // at queue and registry, of which other hubs and clocks change something too
	lookPart  = 10              // one part in so many of the time is spent with that at most
	askEvery  = 3 * time.Second // a worker that does not tell, and one whose connection was lost
	askedPage = 100             // items of its lists
	maxRunID  = 128             // bytes of the id of a run
)

func (h *Hub) newLists() *lists.Board {
	return &lists.Board{Of: slices.Concat(ownLists, workerLists), Source: h.watchLists}
}

// noticed says that queue, registry or links may have changed.
func (h *Hub) noticed() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// watchLists is the source of the hub's board.
func (h *Hub) watchLists(ctx context.Context, b *lists.Board) {
	var all sync.WaitGroup
	defer all.Wait()
	asked := map[*link]context.CancelFunc{}
	sums := map[protocol.List][sha256.Size]byte{}
	for ctx.Err() == nil {
		wanted, other := b.Wanted()
		began := time.Now()
		links := h.all()
		fewer := false
		for l, stop := range asked {
			if !slices.Contains(links, l) {
				stop()
				delete(asked, l)
				fewer = true
			}
		}
		for _, l := range links {
			if asked[l] == nil {
				c, stop := context.WithCancel(ctx)
				asked[l] = stop
				all.Go(func() { l.watchLists(c, b) })
			}
		}
		for _, list := range workerLists {
			if watched, is := wanted[list]; is && (!watched || fewer) {
				b.All(list)
			}
		}
		for _, list := range ownLists {
			watched, is := wanted[list]
			if !is {
				continue
			}
			sum := h.sumOf(ctx, list)
			if !watched || sum != sums[list] {
				b.All(list)
			}
			sums[list] = sum
		}
		pause := max(lists.Every, lookPart*time.Since(began))
		sleep(ctx, pause)
		tick := time.NewTimer(max(0, lookEvery-pause))
		select {
		case <-h.news:
		case <-other:
		case <-tick.C:
		case <-ctx.Done():
		}
		tick.Stop()
	}
}

// sumOf tells a list of the hub itself from another; why it cannot be read is what there is to see of it.
func (h *Hub) sumOf(ctx context.Context, list protocol.List) [sha256.Size]byte {
	var items any
	var err error
	if list == protocol.ListQueue {
		items, err = h.listed(ctx)
	} else {
		var workers []queue.Worker
		workers, err = h.Registry.List(ctx)
		for i := range workers {
			workers[i].Seen = time.Time{} // each heartbeat changes it
		}
		items = workers
	}
	if err != nil {
		items = err.Error()
	}
	text, err := json.Marshal(items)
	if err != nil {
		text = []byte(err.Error())
	}
	return sha256.Sum256(text)
}

// watchLists passes on what a worker tells of its lists, until ctx or the link ends. While it tells nothing, such as one of an older
// version, which does not know the request, it is asked.
func (l *link) watchLists(ctx context.Context, b *lists.Board) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(l.ctx, stop)()
	var tells atomic.Bool
	var hearing sync.WaitGroup
	defer hearing.Wait()
	hearing.Go(func() {
		for ctx.Err() == nil {
			err := l.hearLists(ctx, b, &tells)
			tells.Store(false)
			l.hub.Log.Debug("a worker tells nothing of its lists", "worker", l.id, "why", err)
			sleep(ctx, askEvery)
		}
	})
	sums := map[protocol.List][sha256.Size]byte{}
	for ctx.Err() == nil {
		sleep(ctx, askEvery)
		if tells.Load() {
			clear(sums)
		} else {
			l.askForLists(ctx, b, sums)
		}
	}
}

// hearLists subscribes at the worker, and sets tells when it has reported something.
func (l *link) hearLists(ctx context.Context, b *lists.Board, tells *atomic.Bool) error {
	conn, err := l.dialReplay(ctx, hubIdentity, protocol.JSONFrames)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	ask, err := protocol.Request{Type: protocol.FrameListRequest, ID: "lists", Lists: workerLists}.Encode(protocol.JSONFrames)
	if err != nil {
		return err
	}
	if err := conn.Write(ctx, socketend.Kind(protocol.JSONFrames), ask); err != nil {
		return err
	}
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		f, err := protocol.ParseFrame(protocol.JSONFrames, text)
		switch {
		case err != nil:
			return err
		case f.Type == protocol.FrameReplayError:
			return f.Err()
		case f.Type != protocol.FrameListChanged || !slices.Contains(workerLists, f.List):
			continue
		}
		tells.Store(true)
		if f.All || len(f.Runs) > protocol.MaxListed || slices.ContainsFunc(f.Runs, func(run protocol.RunID) bool { return !queue.Plain(string(run), maxRunID) }) {
			b.All(f.List)
		} else {
			b.Moved(f.List, f.Runs...)
		}
	}
}

// askForLists reads the lists of a worker that tells nothing of them, those that are wanted, and tells which are not as they were.
func (l *link) askForLists(ctx context.Context, b *lists.Board, sums map[protocol.List][sha256.Size]byte) {
	wanted, _ := b.Wanted()
	if l.stalled() {
		return
	}
	for _, list := range workerLists {
		if _, is := wanted[list]; !is {
			continue
		}
		path := "/v1/" + string(list)
		if list != protocol.ListWorkflows { // which takes no limit
			path += fmt.Sprintf("?limit=%d", askedPage)
		}
		asking, done := context.WithTimeout(ctx, l.hub.Asking)
		got, err := l.get(asking, path)
		done()
		if err != nil {
			continue // it is asked again
		}
		sum := sha256.Sum256(got.body)
		if sum == sums[list] {
			continue
		}
		sums[list] = sum
		b.All(list)
		if list == protocol.ListDeletions { // of a run that was far down in the list
			b.All(protocol.ListRuns)
		}
	}
}
