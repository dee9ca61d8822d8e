package pgstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// rounds is how often something random is done: n times, or a hundred times as often with WF_FAULTS=1.
func rounds(n int) int {
	if os.Getenv("WF_FAULTS") != "" {
		n *= 100
	}
	return n
}

// chance is what decides in a test; its seed is printed.
func chance(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// load is writers who commit through a few stores until finish. Each has a run, two memories and forks of its run that nobody else writes to,
// so none of its commits may fail. A reader looks meanwhile whether what was acknowledged is there.
type load struct {
	stores  []*pgstore.Store
	writers []*writer
	acks    chan error
	stop    chan struct{}
	idle    sync.WaitGroup
}

type writer struct {
	run    protocol.RunID
	s      *pgstore.Store
	events atomic.Int64 // acknowledged
	moves  int          // acknowledged, of all heads
	memory protocol.Link
	forks  map[protocol.RunID]protocol.Seq // with the last event of each
}

// start has n writers begin.
func start(t *testing.T, n int, stores ...*pgstore.Store) *load {
	t.Helper()
	l := &load{stores: stores, acks: make(chan error, 1<<20), stop: make(chan struct{})}
	for i := range n {
		w := &writer{run: protocol.RunID(fmt.Sprint("r", i)), s: stores[i%len(stores)], forks: map[protocol.RunID]protocol.Seq{}}
		l.writers = append(l.writers, w)
		j := must(w.s.Journal(t.Context(), w.run))(t) // before anything is killed: a read does not wait for a lost database
		l.idle.Go(func() {
			var err error
			for err == nil {
				select {
				case <-l.stop:
					return
				default:
				}
				if err = w.step(t, j); err == nil {
					l.acks <- nil
				}
			}
			l.acks <- fmt.Errorf("run %s, to which nobody else writes: %w", w.run, err)
		})
	}
	l.idle.Go(func() { l.read(t) })
	return l
}

// step is a commit, or two. Events say their number.
func (w *writer) step(t *testing.T, j *cas.Journal) error {
	ctx, n := t.Context(), w.events.Load()+1
	says := func(n int64) []cas.Draft {
		return []cas.Draft{{Step: "w", Data: protocol.ResumedBy{By: fmt.Sprint(n)}}}
	}
	b := cas.Raw(fmt.Append(nil, w.run, " ", n))
	st, err := j.Stage(castest.Now, says(n), []cas.Block{b})
	if err != nil {
		return err
	}
	moves := 1
	if n%3 == 0 { // several heads in one batch
		for _, name := range w.memories() {
			st.With(cas.Move{Name: name, Old: w.memory, New: b.Link})
			moves++
		}
	}
	at, err := j.Commit(ctx, st)
	if err != nil {
		return err
	}
	w.moves += moves
	if moves > 1 {
		w.memory = b.Link
	}
	w.events.Store(n)
	if n%7 == 0 {
		id := protocol.RunID(fmt.Sprintf("%s-%d", w.run, n))
		f, err := j.Fork(ctx, castest.Now, id, at[0], says(n+1), nil, nil)
		if err == nil {
			_, err = f.Append(ctx, castest.Now, says(n+2), nil)
		}
		if err != nil {
			return err
		}
		w.moves, w.forks[id] = w.moves+2, protocol.Seq(n+2)
	}
	return nil
}

func (w *writer) memories() []string {
	return []string{"memory/a-" + string(w.run), "memory/b-" + string(w.run)}
}

// read looks for what is acknowledged, by another store than that of the writer.
func (l *load) read(t *testing.T) {
	tick := time.NewTicker(5 * time.Millisecond) // so that the writers have the processor
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		w := l.writers[n%len(l.writers)]
		want := w.events.Load()
		h, err := l.stores[(n+1)%len(l.stores)].Head(t.Context(), protocol.RunHead(w.run))
		if errors.Is(err, protocol.ErrUnreachable) {
			continue
		}
		if err == nil && int64(h.Seq) < want {
			err = fmt.Errorf("event %d was acknowledged, and the head is at %d", want, h.Seq)
		}
		if err != nil {
			l.acks <- fmt.Errorf("read of run %s: %w", w.run, err)
			return
		}
	}
}

// await returns after n more acknowledgements, in the middle of other commits.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := <-l.acks; err != nil {
			t.Fatal(err)
		}
	}
}

// finish ends the writers, and checks that all that they were told is stored, in order and once. dsn is the database itself.
func (l *load) finish(t *testing.T, dsn string) {
	t.Helper()
	close(l.stop)
	l.idle.Wait()
	l.await(t, len(l.acks))
	s, ctx, moves := l.stores[0], t.Context(), 0
	for _, w := range l.writers {
		runs := map[protocol.RunID]protocol.Seq{w.run: protocol.Seq(w.events.Load())}
		for id, seq := range w.forks {
			runs[id] = seq
		}
		moves += w.moves
		for id, want := range runs {
			got := must(castest.Events(ctx, s, id, 0))(t)
			if protocol.Seq(len(got)) != want {
				t.Errorf("run %s has %d events, %d were acknowledged", id, len(got), want)
			}
			for i, e := range got {
				if d := must(cas.DecodeData[protocol.ResumedBy](&e.Event))(t); d.By != fmt.Sprint(i+1) {
					t.Errorf("run %s, event %d says %s", id, i+1, d.By)
				}
			}
		}
		for n := range w.events.Load() {
			if ok := must(castest.Has(ctx, s, cas.Raw(fmt.Append(nil, w.run, " ", n+1)).Link))(t); !ok {
				t.Errorf("run %s, event %d: its block is gone", w.run, n+1)
			}
		}
		for _, name := range w.memories() {
			if h := must(s.Head(ctx, name))(t); h.Link != w.memory {
				t.Errorf("%s is at %s, want %s", name, h.Link, w.memory)
			}
		}
	}
	if n := ask(t, dsn, `select count(*) from wf.reflog`); n != int64(moves) {
		t.Errorf("%d moves are stored, %d were acknowledged", n, moves)
	}
}
