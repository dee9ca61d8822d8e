package notify

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"wf/cas"
	"wf/protocol"
)

const (
	inFlight = 8                     // deliveries of one sink under way at once
	gather   = 50 * time.Millisecond // commits gather for so long before they are looked at
	lookFor  = time.Second           // how often a sink that another process delivers to is asked for
	batch    = 500                   // runs that are recorded in one commit
	failsMax = 8                     // attempts in a row without success, after which a sink is asked less often
	restMax  = time.Minute           // between two attempts then
)

// Serve delivers until ctx ends: to every sink of the configs, and of the workflows that were trusted with it, which
// no other process delivers to.
func (d *Deliverer) Serve(ctx context.Context) {
	s := server{d: d, held: map[string]*sink{}, runs: cas.MovedRuns{Store: d.Store}}
	defer s.close()
	for ctx.Err() == nil {
		since, err := d.Store.Changes(ctx)
		began := time.Now()
		if err == nil {
			err = s.turn(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.Log.Error("notifications wait", "why", protocol.Flat(err).Message, "again in", lookFor)
			pause(ctx, lookFor)
			continue
		}
		// A store of many runs is not listed all the time.
		if !pause(ctx, max(gather, 10*time.Since(began))) {
			return
		}
		s.await(ctx, since)
	}
}

// A server is the state of Serve.
type server struct {
	d      *Deliverer
	opened bool
	held   map[string]*sink
	waits  bool          // for sinks that another process has
	runs   cas.MovedRuns // that were not looked at for all sinks that are held
	work   sync.WaitGroup
}

func (s *server) await(ctx context.Context, since uint64) {
	if s.waits {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, lookFor)
		defer stop()
	}
	_, _ = s.d.Store.AwaitChange(ctx, since) // an error shows with the next turn
}

// turn takes the sinks that it can get, and looks at what has changed.
func (s *server) turn(ctx context.Context) error {
	if err := s.d.Store.MayGoOn(ctx); errors.Is(err, protocol.ErrHeld) {
		return nil // nothing is told of a store that was restored, before it is adopted
	} else if err != nil {
		return err
	}
	if !s.opened {
		if err := s.d.Open(ctx, nil); err != nil {
			return err
		}
		s.opened = true
	}
	names, err := s.names(ctx)
	if err != nil {
		return err
	}
	s.waits = false
	for _, name := range names {
		if s.held[name] == nil {
			if err := s.take(ctx, name); err != nil {
				return err
			}
		}
	}
	for _, k := range s.held {
		k.mu.Lock()
		err := k.catchUp(ctx)
		k.mu.Unlock()
		if err != nil {
			return err
		}
		k.wakeUp()
	}
	if len(s.held) == 0 {
		return nil
	}
	return s.look(ctx)
}

// names are the sinks of the configs, and those of workflows that have a journal.
func (s *server) names(ctx context.Context) (names []string, err error) {
	for _, c := range s.d.Sinks {
		names = append(names, c.Journal)
	}
	all, err := cas.Sinks(ctx, s.d.Store)
	for _, name := range all {
		if strings.HasPrefix(name, workflowSinks) {
			names = append(names, name)
		}
	}
	return names, err
}

// take begins to deliver to a sink, unless another process does.
func (s *server) take(ctx context.Context, name string) error {
	unlock, ok, err := s.d.Store.LockSink(ctx, name)
	if err != nil {
		return err
	}
	if !ok {
		s.waits = true
		return nil
	}
	j, err := openJournal(ctx, s.d.Store, name)
	if err != nil {
		return errors.Join(err, unlock())
	}
	k := &sink{journal: j, d: s.d, unlock: unlock, wake: make(chan struct{}, 1)}
	s.held[name] = k
	s.runs.Forget() // it has seen none
	s.work.Go(func() { k.pump(ctx) })
	return nil
}

// look looks at the runs that moved.
func (s *server) look(ctx context.Context) error {
	moved, err := s.runs.Due(ctx)
	if err != nil {
		return err
	}
	for len(moved) > 0 {
		n := min(len(moved), batch)
		if err := s.lookAt(ctx, moved[:n]); err != nil {
			return err
		}
		moved = moved[n:]
	}
	return nil
}

func (s *server) lookAt(ctx context.Context, heads []cas.Head) error {
	var all []seen
	for _, h := range heads {
		run, from := protocol.RunOf(h.Name), h.Seq
		for _, k := range s.held {
			k.mu.Lock()
			from = min(from, k.cursor(run))
			k.mu.Unlock()
		}
		if from == h.Seq {
			continue
		}
		x, err := s.d.look(ctx, run, from)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted): // removed meanwhile
			continue
		case err != nil: // it does not stop the others, and is looked at again when it moves
			s.d.Log.Error("the run cannot be read; wf verify tells more", "run", run, "why", err)
			continue
		}
		all = append(all, x)
	}
	for _, k := range s.held {
		if err := s.d.add(ctx, k.journal, all); err != nil {
			return err
		}
		k.wakeUp()
	}
	for _, h := range heads {
		s.runs.Done(h)
	}
	return nil
}

func (s *server) close() {
	s.work.Wait()
	for _, k := range s.held {
		k.mu.Lock()
		err := k.append(context.Background(), s.d.now(), func(*State) []cas.Draft { return k.passing(1) })
		err = errors.Join(err, k.keep(context.Background(), 64))
		k.mu.Unlock()
		if err = errors.Join(err, k.unlock()); err != nil {
			s.d.Log.Warn("the sink is left", "sink", k.name, "why", err)
		}
	}
}

// A sink is one that this process delivers to.
type sink struct {
	*journal
	d      *Deliverer
	unlock func() error
	wake   chan struct{} // something may be due

	// The owner of mu has these too.
	under int       // deliveries under way
	fails int       // attempts in a row that did not work
	rest  time.Time // until when nothing is attempted
}

func (k *sink) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// pump delivers until ctx ends, and returns when nothing is under way.
func (k *sink) pump(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		due, next := k.start(ctx)
		for _, x := range due {
			work.Go(func() { k.deliver(ctx, x) })
		}
		var alarm *time.Timer
		var timer <-chan time.Time
		if !next.IsZero() {
			alarm = time.NewTimer(next.Sub(k.d.now()))
			timer = alarm.C
		}
		select {
		case <-k.wake:
		case <-timer:
		case <-ctx.Done():
		}
		if alarm != nil {
			alarm.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// start takes what is due and has room; next is when something will be, the zero time where that is not known.
func (k *sink) start(ctx context.Context) (due []*Delivery, next time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, room := k.d.now(), inFlight
	if k.fails >= failsMax {
		room = 1
	}
	if k.rest.After(now) {
		return nil, k.rest
	}
	for ctx.Err() == nil && k.under < room {
		x, at := k.st.Take(now.UnixMicro())
		if x == nil {
			if at > 0 {
				next = time.UnixMicro(at)
			}
			break
		}
		k.under++
		due = append(due, x)
	}
	return due, next
}

// deliver attempts a delivery, and records what came of it.
func (k *sink) deliver(ctx context.Context, x *Delivery) {
	k.mu.Lock()
	at, age, overtaken := *x, k.st.age(x, k.d.now().UnixMicro()), k.st.overtaken(x)
	k.mu.Unlock()
	result := k.d.attempt(ctx, k.name, at, age, overtaken)
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.wakeUp()
	k.under--
	if result == nil {
		k.st.Release(x)
		return
	}
	if _, ok := result.(protocol.DeliveryFailed); ok {
		if k.fails++; k.fails >= failsMax {
			k.rest = k.d.now().Add(min(time.Second<<min(k.fails-failsMax, 10), restMax))
		}
	} else {
		k.fails = 0
	}
	err := k.append(ctx, k.d.now(), func(*State) []cas.Draft { return []cas.Draft{{Data: result}} })
	if err != nil { // it is attempted again, under the same id
		k.st.Release(x)
		k.rest = k.d.now().Add(lookFor)
		k.d.Log.Error("a notification may be delivered twice: what came of it cannot be recorded", "sink", k.name, "id", x.ID, "why", err)
		return
	}
	if k.d.Notice != nil {
		k.d.Notice(result)
	}
	if err := k.keep(ctx, snapshotEvery); err != nil {
		k.d.Log.Warn("notifications", "why", err)
	}
}
