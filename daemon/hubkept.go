package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"wf/cas"
	"wf/hub/queue"
	"wf/hub/queue/database"
	"wf/hub/queue/embedded"
	"wf/hub/queue/line"
	"wf/store"
)

// hubKept is what a hub keeps, wherever that is.
type hubKept struct {
	Queue    *line.Queue
	Registry queue.Registry
	Pointers queue.Pointers
	Close    func() error
	digests  []byte // key of the digests of requests
}

// openKept opens the queue of a hub: in a database, or in its directory.
func (o HubOptions) openKept(ctx context.Context, data hubData) (hubKept, error) {
	if store.IsDatabase(o.Data) {
		s, err := database.Open(ctx, o.Data, database.Options{Outage: o.tellOutage})
		if err != nil {
			return hubKept{}, err
		}
		return hubKept{s.Queue, s.Registry, s.Pointers, s.Close, s.DigestKey}, nil
	}
	s, err := embedded.Open(data.file("hub.db"))
	if err != nil {
		return hubKept{}, err
	}
	digests, err := cas.Secret(data.file("digest.key"))
	if err != nil {
		return hubKept{}, errors.Join(err, s.Close())
	}
	return hubKept{s.Queue, s.Registry, s.Pointers, s.Close, digests}, nil
}

// tellOutage logs that the database of the queue is lost, and that it is back.
func (o HubOptions) tellOutage(err error) {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err != nil {
		log.Error("the queue cannot be reached: no job is taken until it can", "error", err)
		return
	}
	log.Info("the queue can be reached again")
}
