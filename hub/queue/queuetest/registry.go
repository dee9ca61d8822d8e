package queuetest

import (
	"slices"
	"time"

	"wf/hub/queue"
)

func (w *world) announce(id, name string, caps ...string) {
	w.Helper()
	_, err := w.Registry.Announce(w.Context(), queue.Worker{ID: id, Name: name, Version: "1", Caps: caps}, ttl)
	w.ok(err)
}

func (w *world) workers() []queue.Worker {
	w.Helper()
	list, err := w.Registry.List(w.Context())
	w.ok(err)
	return list
}

var registryCases = map[string]func(*world){
	"workers are listed by name": func(w *world) {
		w.announce("2", "zoe", "b", "a")
		w.announce("3", "ada")
		w.announce("1", "zoe")
		list := w.workers()
		var ids []string
		for _, a := range list {
			ids = append(ids, a.ID)
			if !a.Live || a.Since.IsZero() || a.Seen.IsZero() {
				w.Errorf("have %+v, want it live", a)
			}
		}
		if !slices.Equal(ids, []string{"3", "1", "2"}) || !slices.Equal(list[2].Caps, []string{"a", "b"}) {
			w.Errorf("have %v, %v", ids, list[2].Caps)
		}
	},
	"a worker that is not heard of is gone, and comes back": func(w *world) {
		w.announce("1", "ada")
		since := w.workers()[0].Since
		<-time.After(ttl)
		if list := w.workers(); len(list) != 1 || list[0].Live {
			w.Fatalf("have %+v, want it listed as gone", list)
		}
		w.announce("1", "ada")
		if a := w.workers()[0]; !a.Live || !a.Since.After(since) {
			w.Errorf("have %+v, as if it had not been away", a)
		}
	},
	"a heartbeat keeps a worker": func(w *world) {
		w.announce("1", "ada")
		since := w.workers()[0].Since
		<-time.After(ttl / 2)
		w.announce("1", "ada", "new")
		<-time.After(ttl * 3 / 4)
		if a := w.workers()[0]; !a.Live || !slices.Equal(a.Caps, []string{"new"}) || !a.Since.Equal(since) {
			w.Errorf("have %+v", a)
		}
	},
	"a worker withdraws": func(w *world) {
		w.announce("1", "ada")
		w.ok(w.Registry.Withdraw(w.Context(), "1"))
		w.ok(w.Registry.Withdraw(w.Context(), "unknown"))
		if list := w.workers(); len(list) != 1 || list[0].Live {
			w.Errorf("have %+v, want it listed as gone", list)
		}
	},
	"a restart knows the workers, and that none is here yet": func(w *world) {
		w.announce("1", "ada", "fix")
		w.reopen()
		list := w.workers()
		if len(list) != 1 || list[0].Live || list[0].Name != "ada" || !slices.Equal(list[0].Caps, []string{"fix"}) {
			w.Errorf("have %+v", list)
		}
	},
}
