package main

import (
	"context"
	"sync"
	"time"

	"wf/api"
	"wf/protocol"
	"wf/service"
	"wf/service/query"
)

// A filling keeps the table of a sweep or an eval in the store while it changes, for the page. That it cannot be kept is told, and
// stops nothing.
type filling struct {
	a   *app
	ctx context.Context
	l   *service.Local
	// anew says that it begins now, whatever a table of the same name came to.
	anew bool

	mu     sync.Mutex
	table  *service.Filling // nil before the first table, and where it cannot be kept
	began  api.Time
	failed bool
}

// put has a table stored soon; name tells it from those of other arguments.
func (x *filling) put(name string, t *api.Table) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.table == nil && !x.failed {
		x.begin(service.TableID(t.Kind, name))
	}
	if x.table != nil {
		t.Began = x.began
		x.table.Put(t)
	}
}

func (x *filling) begin(id protocol.RunID) {
	var err error
	if x.table, err = x.l.FillTable(x.ctx, id); err != nil {
		x.fail(err)
		return
	}
	x.began = query.Stamp(time.Now().UnixMicro())
	if was, err := x.l.Table(x.ctx, id); err == nil && !x.anew {
		x.began = was.Began
	}
}

func (x *filling) fail(err error) {
	x.failed = true
	x.a.Progress("warning: the page does not show it: %v", err)
}

// close returns when the last table is stored.
func (x *filling) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.table == nil {
		return
	}
	if err := x.table.Close(); err != nil {
		x.fail(err)
	}
	x.table = nil
}
