package daemon

import (
	"context"
	"maps"
	"slices"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// A Supervisor looks at the runs of its store at its start, and whenever something was committed:
//
//	of its own, waiting ─► answered ─► drive
//	of another process  ─► quiet for a second, and not driven ─► waits: keep │ answered: drive
//
// What another process is about to do is left to it, so that a user who has just begun or
// answered a run does not find it taken. A run that came from elsewhere is left alone, and its timers with
// it, until wf store adopt.

// unmanaged is a run that the supervisor does not manage.
type unmanaged struct {
	head  protocol.Link // as it was last seen
	since time.Time     // when; the zero time is a head that was looked at
}

const (
	debounce    = 50 * time.Millisecond // commits gather for so long before they are looked at
	gracePeriod = time.Second           // how long an unmanaged run is quiet before it is looked at
)

// follow looks for runs to go on with until the supervisor ends. A store that cannot be read now is
// read later.
func (k *Supervisor) follow() {
	since, err := k.s.Changes(k.ctx)
	if err == nil && !k.alone {
		err = k.adopt(func(protocol.RunID) bool { return true })
	}
	if err == nil {
		k.lookedAround()
	}
	for {
		if k.ctx.Err() != nil {
			return
		}
		if err != nil {
			k.log.Error("what other processes do is not seen", "why", describe(err), "again in", gracePeriod)
			k.pause(gracePeriod)
		}
		var now uint64
		if now, err = awaitChange(k.ctx, k.s, since, gracePeriod); err != nil { // then an unmanaged run may have been quiet long enough
			continue
		}
		if k.adopted() {
			if err = k.adopt(k.leftAlone); err != nil {
				continue
			}
		}
		if now != since {
			k.pause(debounce)
		}
		if err = k.lookAround(now != since); err == nil {
			since = now
			k.lookedAround()
		}
	}
}

// pause lets time pass, unless the supervisor ends.
func (k *Supervisor) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-k.ctx.Done():
	}
}

// awaitChange waits for a commit in a store, patience long.
func awaitChange(ctx context.Context, s protocol.Feed, since uint64, patience time.Duration) (uint64, error) {
	wait, stop := context.WithTimeout(ctx, patience)
	defer stop()
	now, err := s.AwaitChange(wait, since)
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return since, nil
	}
	return now, err
}

// adopt goes on with the runs that a daemon or another driver left behind: those that
// were cut off, those that wait, and those that stopping a daemon suspended. What a person
// suspended, an error or a limit, stays as it is. It looks only at runs that are wanted.
func (k *Supervisor) adopt(wanted func(protocol.RunID) bool) error {
	heads, err := k.s.Newest(k.ctx)
	if err != nil {
		return err
	}
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		if !wanted(run) {
			continue
		}
		st, err := k.e.State(k.ctx, run)
		if k.ctx.Err() != nil {
			return k.ctx.Err()
		}
		k.leave(run, unmanaged{head: h.Link})
		if err != nil {
			k.log.Error("the run cannot be read; wf verify tells more", "run", run, "why", err)
			continue
		}
		k.see(run, st)
		at := engine.Standing(run, st)
		if at.Parent != "" && at.Due == 0 {
			continue // driven with its parent
		}
		goesOn := at.Due == cas.DueNow
		switch {
		case !goesOn && st.Status() != protocol.Waiting, !k.own(run):
		case goesOn:
			k.log.Info("going on", "run", run)
			k.Keep(run, engine.DriveOptions{By: "wf serve"})
		default:
			k.hold(run, h.Link, st)
		}
	}
	return nil
}

// leftAlone reports whether a run was left alone since it came from elsewhere.
func (k *Supervisor) leftAlone(run protocol.RunID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.foreign[run]
}

// own reports whether a run may go on here. The log has one line about each that came from elsewhere.
func (k *Supervisor) own(run protocol.RunID) bool {
	err := k.e.Own(k.ctx, run)
	k.mu.Lock()
	told := k.foreign[run]
	switch {
	case err == nil:
		delete(k.foreign, run)
	case k.ctx.Err() == nil:
		k.foreign[run] = true
	}
	k.mu.Unlock()
	if err != nil && !told && k.ctx.Err() == nil {
		k.log.Warn("the run is left alone", "run", run, "why", describe(err))
	}
	return err == nil
}

// adopted reports whether runs that came from elsewhere may have been adopted since the last look.
func (k *Supervisor) adopted() bool {
	k.mu.Lock()
	waits := len(k.foreign) > 0
	k.mu.Unlock()
	return waits && !k.alone && k.e.Pins != nil && k.e.Pins.Changed()
}

// leave notes a run that the supervisor does not manage.
func (k *Supervisor) leave(run protocol.RunID, s unmanaged) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaves(run, s)
}

// leaves is leave; the caller holds mu.
func (k *Supervisor) leaves(run protocol.RunID, s unmanaged) {
	if k.unmanaged[run] = s; !s.since.IsZero() {
		k.restless[run] = true
	}
}

// hold keeps a run that waits.
func (k *Supervisor) hold(run protocol.RunID, head protocol.Link, st *rules.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs[run] == nil {
		delete(k.unmanaged, run)
		r := &managed{head: head}
		k.runs[run] = r
		k.await(run, r, st)
	}
}

// lookAround looks at the runs with heads that moved, and at unmanaged ones that are quiet now. A run
// that cannot be read does not stop the others.
func (k *Supervisor) lookAround(moved bool) error {
	heads := map[string]cas.Head{}
	var failed error // the others are looked at all the same
	for _, run := range k.unsettled(moved) {
		h, err := k.s.Head(k.ctx, protocol.RunHead(run))
		if failed = err; err != nil {
			break
		}
		heads[protocol.RunHead(run)] = h
	}
	if moved && failed == nil {
		var came []cas.Head
		var all bool
		came, all, failed = k.moves.Next(k.ctx)
		for _, h := range came {
			heads[h.Name] = h
		}
		if all {
			k.forgetGone(heads)
		}
	}
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		h := heads[name]
		run := protocol.RunOf(name)
		if !h.Link.Defined() {
			k.forget(run)
			continue
		}
		var err error
		switch k.sort(run, h.Link, now) {
		case ours:
			k.awaitRequests()
			err = k.look(run, h.Link)
		case quiet:
			err = k.consider(run, h)
		}
		if k.ctx.Err() != nil {
			return k.ctx.Err()
		}
		if err != nil {
			k.log.Error("the run cannot be read; wf verify tells more", "run", run, "why", err)
			k.leave(run, unmanaged{head: h.Link})
		}
	}
	return failed
}

// unsettled are the runs that are to be looked at although they may not have moved: unmanaged ones until they are quiet and were
// looked at, and behind a commit those that wait and could not be read.
func (k *Supervisor) unsettled(moved bool) (runs []protocol.RunID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for run := range k.unread {
		if k.runs[run] == nil {
			delete(k.unread, run)
		} else if moved {
			runs = append(runs, run)
		}
	}
	for run := range k.restless {
		if k.unmanaged[run].since.IsZero() { // it was, or is managed
			delete(k.restless, run)
			continue
		}
		runs = append(runs, run)
	}
	return runs
}

// forgetGone drops what is kept of runs that were looked at and are not among all heads that there are.
func (k *Supervisor) forgetGone(heads map[string]cas.Head) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.unmanaged, func(run protocol.RunID, s unmanaged) bool {
		_, there := heads[protocol.RunHead(run)]
		return !there && s.since.IsZero()
	})
}

// forget drops what is kept of a run that was deleted.
func (k *Supervisor) forget(run protocol.RunID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.unmanaged, run)
	delete(k.foreign, run)
	delete(k.unread, run)
	if r := k.runs[run]; r != nil && !r.driving {
		if r.timer != nil {
			r.timer.Stop()
		}
		delete(k.runs, run)
	}
}

// What is to be done with a run, once its head was read.
type sorting int

const (
	nothing sorting = iota
	ours
	quiet
)

// sort says what is to be done with a run.
func (k *Supervisor) sort(run protocol.RunID, head protocol.Link, now time.Time) sorting {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.runs[run]; r != nil {
		if r.driving || r.head == head {
			return nothing
		}
		return ours
	}
	s, known := k.unmanaged[run]
	switch {
	case k.alone, known && s.head == head && s.since.IsZero():
		return nothing
	case !known || s.head != head:
		k.leaves(run, unmanaged{head, now})
		return nothing
	case now.Sub(s.since) < gracePeriod:
		return nothing
	}
	return quiet
}

// consider goes on with a run that another process left waiting, or answered.
func (k *Supervisor) consider(run protocol.RunID, h cas.Head) error {
	driven, err := k.s.Driven(k.ctx, run)
	if driven {
		k.leave(run, unmanaged{h.Link, time.Now()}) // to be looked at when it is let go
		return nil
	}
	if err != nil {
		return err
	}
	st, err := k.e.State(k.ctx, run)
	if err != nil {
		return err
	}
	k.leave(run, unmanaged{head: h.Link})
	switch {
	case st.Info.Parent != nil && !st.Closes(): // driven with its parent
	case st.Status().Final(), !k.own(run):
	case st.Status() == protocol.Waiting:
		k.hold(run, h.Link, st)
	case st.Status() == protocol.Running && st.Closes(), // the process that cancelled it was killed
		st.Status() == protocol.Queued: // its turn may come while no other process waits with it
		k.Keep(run, engine.DriveOptions{By: "wf serve"})
	case st.Status() == protocol.Running:
		for e, err := range k.s.After(k.ctx, run, h.Seq-1) {
			if err != nil {
				return err
			}
			if e.Seq == h.Seq && e.Type == protocol.EvAnswered {
				k.Keep(run, engine.DriveOptions{By: "wf serve"})
			}
		}
	}
	return nil
}

// look drives a run that waited if it no longer does.
func (k *Supervisor) look(run protocol.RunID, head protocol.Link) error {
	st, err := k.e.State(k.ctx, run)
	own := err == nil && (st.Status().Final() || k.own(run))
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.unread[run] = true
		return err
	}
	delete(k.unread, run)
	r := k.runs[run]
	if r == nil || r.driving {
		return nil
	}
	r.head = head
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if !own {
		delete(k.runs, run)
		k.leaves(run, unmanaged{head: head})
		return nil
	}
	switch st.Status() {
	case protocol.Running, protocol.Queued:
		k.begin(run, engine.DriveOptions{By: "wf serve"})
	case protocol.Waiting:
		k.await(run, r, st) // for something else, maybe
	default:
		delete(k.runs, run)
	}
	return nil
}
