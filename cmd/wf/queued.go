package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// lookAtGroup is how often a run that waits for its turn is looked at, and what it waits for.
const lookAtGroup = time.Second

// A lineWatch tells what keeps a run in a queue, where that does not go on by itself: the run would wait for ever, and its user
// not know for what.
type lineWatch struct {
	a    *app
	p    *target
	run  protocol.RunID
	stop context.CancelFunc
	work sync.WaitGroup
	wake chan struct{}
}

func (a *app) watchLine(ctx context.Context, p *target, run protocol.RunID) *lineWatch {
	ctx, stop := context.WithCancel(ctx)
	w := &lineWatch{a: a, p: p, run: run, stop: stop, wake: make(chan struct{}, 1)}
	w.work.Go(func() { w.watch(ctx) })
	return w
}

// saw has the watch look, if it rests.
func (w *lineWatch) saw(u api.Update) {
	if _, ok := u.Data.(protocol.QueuedFor); ok {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *lineWatch) close() {
	w.stop()
	w.work.Wait()
}

func (w *lineWatch) watch(ctx context.Context) {
	told := map[string]bool{}
	look := time.NewTimer(lookAtGroup)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-look.C:
		}
		v, err := w.p.Run(ctx, w.run, api.Window{Limit: lastSteps})
		if err != nil {
			continue // following says so
		}
		places := []*api.QueuePlace{v.Queue}
		for _, s := range v.Steps {
			places = append(places, s.Queue)
		}
		queued := false
		for _, q := range places {
			if q == nil {
				continue
			}
			queued = true
			for _, by := range q.Behind {
				run, _, _ := strings.Cut(by, ":")
				holder, err := w.p.Run(ctx, protocol.RunID(run), api.Window{Limit: lastSteps})
				if err != nil {
					continue // it has ended, or the next look says more
				}
				if text := render.Keeps(q.Group, holder); text != "" && !told[text] {
					told[text] = true
					fmt.Fprintln(w.a.Err, text) // with -q too: nothing would come any more
				}
			}
		}
		if queued {
			look.Reset(lookAtGroup)
		}
	}
}
