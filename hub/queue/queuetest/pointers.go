package queuetest

import (
	"errors"
	"sync"

	"wf/hub/queue"
	"wf/protocol"
)

var pointerCases = map[string]func(*world){
	"a pointer that was never written is unknown": func(w *world) {
		_, err := w.Pointers.Get(w.Context(), "R1")
		w.wants(err, protocol.ErrUnknownRun)
	},
	"Swap writes from the revision that was read": func(w *world) {
		p, err := w.Pointers.Swap(w.Context(), queue.Pointer{Run: "R1", Worker: "a", Seq: 1, Head: "c1"})
		w.ok(err)
		_, err = w.Pointers.Swap(w.Context(), queue.Pointer{Run: "R1", Worker: "b"})
		w.wants(err, queue.ErrSwapped)
		p.Worker, p.Epoch = "b", 7
		next, err := w.Pointers.Swap(w.Context(), p)
		w.ok(err)
		_, err = w.Pointers.Swap(w.Context(), p)
		w.wants(err, queue.ErrSwapped)
		got, err := w.Pointers.Get(w.Context(), "R1")
		w.ok(err)
		if got != next || got.Worker != "b" || got.Epoch != 7 || got.Seq != 1 || got.Revision <= p.Revision {
			w.Errorf("have %+v, want %+v", got, next)
		}
		_, err = w.Pointers.Get(w.Context(), "R2")
		w.wants(err, protocol.ErrUnknownRun)
	},
	"two workers that claim one run: one of them wins": func(w *world) {
		const claims = 20
		var won, lost int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range claims {
			all.Go(func() {
				_, err := w.Pointers.Swap(w.Context(), queue.Pointer{Run: "R1", Worker: "a"})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won++
				case errors.Is(err, queue.ErrSwapped):
					lost++
				default:
					w.Error(err)
				}
			})
		}
		all.Wait()
		if won != 1 || lost != claims-1 {
			w.Errorf("%d won, %d lost", won, lost)
		}
	},
	"a restart knows which worker has a run": func(w *world) {
		p, err := w.Pointers.Swap(w.Context(), queue.Pointer{Run: "R1", Worker: "a", Epoch: 3})
		w.ok(err)
		p.Seq, p.Head = 9, "c9"
		_, err = w.Pointers.Swap(w.Context(), p)
		w.ok(err)
		w.reopen()
		got, err := w.Pointers.Get(w.Context(), "R1")
		w.ok(err)
		if got.Worker != "a" || got.Epoch != 3 || got.Seq != 9 || got.Head != "c9" {
			w.Errorf("have %+v", got)
		}
		got.Worker = "b"
		_, err = w.Pointers.Swap(w.Context(), got)
		w.ok(err)
	},
}
