package daemon

import (
	"context"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/store"
)

// retainEvery is how often a daemon deletes what has expired by retention: in the user's config.
const retainEvery = time.Hour

// retainGrace keeps blocks that processes may be about to name.
const retainGrace = time.Hour

// retains deletes what has expired until ctx ends.
func (d *Daemon) retains(ctx context.Context) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		d.retain(ctx, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// retain deletes what has expired, and has the space freed.
func (d *Daemon) retain(ctx context.Context, now time.Time) {
	deleted := 0
	err := d.Service.Retain(ctx, now, func(x *api.Deleted, err error) {
		if err != nil {
			d.Log.Error("a run that has expired is not deleted; it is tried again", "why", err)
			return
		}
		deleted++
		d.Log.Info("deleted", "run", x.ID, "runs", len(x.Runs), "why", x.Why)
	})
	if err != nil && ctx.Err() == nil {
		d.Log.Error("not all that has expired is deleted", "why", err)
	}
	err = d.Service.RetainFiles(ctx, now, func(run protocol.RunID, err error) {
		if err != nil {
			d.Log.Error("the files of a run that have expired are not dropped; it is tried again", "run", run, "why", err)
			return
		}
		deleted++
		d.Log.Info("files dropped", "run", run, "why", "retention")
	})
	if err != nil && ctx.Err() == nil {
		d.Log.Error("the files of runs that have expired are not dropped", "why", err)
	}
	if deleted == 0 {
		return
	}
	if store.IsDatabase(d.Service.Store.Name()) {
		return // a role of its own collects there
	}
	if r, err := store.Collect(ctx, d.Service.Store, cas.GCOptions{Grace: retainGrace}); err == nil {
		d.Log.Info("collected", "blocks", r.Removed, "bytes", r.Bytes)
	} else if ctx.Err() == nil {
		d.Log.Error("the space of deleted runs is not freed; wf gc does it", "why", err)
	}
}
