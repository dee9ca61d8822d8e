package pgstore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"wf/cas"
	"wf/protocol"
)

// A worker is this process as others see it: one row, with a beat that grows.
//
//	beat acknowledged ── lease·⅔ without another ──► aged: what acts under its claims ends
//	                  ── lease, as others see it ──► its claims may be taken over
//
// Another worker is taken for dead by a process that has seen its beat unchanged for a whole lease, by its own clock of
// elapsed time, with reads that succeeded throughout: while the database is away no beat can move, so a read that fails begins
// all of that anew. No clock that can be set decides anything.
type worker struct {
	s     *Store
	lease time.Duration
	host  string
	pid   int
	c     *conn // of beats alone: reads that take long do not hold them up

	joining chan struct{} // held while the first beat is made
	joined  bool
	loop    sync.WaitGroup

	mu     sync.Mutex
	has    []string        // of what runs need, once it has asked for those that are due
	missed error           // why the last beat was not acknowledged
	acked  time.Time       // when the last beat that was acknowledged was sent
	firm   context.Context // for what acts; nil while aged
	age    context.CancelCauseFunc
	timer  *time.Timer   // ages
	ticked chan struct{} // closed after each beat, acknowledged or not
	seen   map[string]sighting
	trees  map[string]*tree // by the name of the head of its root
	runs   map[string]bool  // names that are claimed here
	doubts []doubt
}

// beatsPerLease is how often a worker beats within a lease.
const beatsPerLease = 5

// A beat, and what it sees: of the store, and of all workers.
const sendBeat = `with b as (insert into wf.workers(id, beat, at, host, pid, writer, lease, has) values ($1, 1, statement_timestamp(), $2, $3, $4, $5, $6)
	on conflict (id) do update set beat = workers.beat + 1, at = excluded.at, has = excluded.has)
	select m.layout::bigint, m.min_writer::bigint, m.uuid::text, w.id, w.beat, w.lease::bigint from wf.meta m left join wf.workers w on true`

const (
	dropWorker = `delete from wf.workers where id = $1 and (beat = $2 or $2 < 0)`
	// Rows of workers that were killed are removed after so many leases. What they had stays claimed until it is taken over.
	forgetLeases = 20
)

// sighting is a beat of another worker as this process has seen it.
type sighting struct {
	beat  int64 // none for a worker that has no row
	lease time.Duration
	since time.Time // when it had been read first
	last  time.Time // when the last read of it began
}

// none is the beat of a worker that has no row.
const none = -1

func newWorker(s *Store) *worker {
	host, err := os.Hostname()
	if err != nil || !storable(host) || host == "" {
		host = "a machine without a name"
	}
	return &worker{s: s, lease: s.o.Lease, host: host, pid: os.Getpid(), joining: make(chan struct{}, 1), ticked: make(chan struct{}), seen: map[string]sighting{},
		trees: map[string]*tree{}, runs: map[string]bool{}}
}

// having notes what this process has, nil for what is known of it, and gives it. Others see it with the next beat.
func (w *worker) having(has []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if has != nil {
		w.has = has
	}
	return w.has
}

// join has this process beat from now on.
func (w *worker) join(ctx context.Context) error {
	select {
	case w.joining <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-w.joining }()
	if w.joined {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.missed // nothing is begun while the database is away
	}
	if err := w.beat(ctx); err != nil {
		return err
	}
	w.joined = true
	w.loop.Go(w.beats)
	return nil
}

// beats beats until the store is closed.
func (w *worker) beats() {
	next := time.NewTimer(w.lease / beatsPerLease)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-w.s.life.Done():
			return
		}
		pause := w.lease / beatsPerLease
		if err := w.beat(w.s.life); err != nil {
			pause /= 4
		}
		next.Reset(pause)
	}
}

// beat sends a beat, and takes in what it finds.
func (w *worker) beat(ctx context.Context) (err error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, w.lease/3)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && whole.Err() == nil {
			err = fmt.Errorf("%s: no answer within %s: %w", w.s.a.Shown, w.lease/3, protocol.ErrUnreachable)
		} else if err != nil {
			err = fmt.Errorf("%s: %w", w.s.a.Shown, classify(ctx, err))
		}
		w.s.outage.note(&w.s.outage.beats, err)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.missed = err; err != nil {
			clear(w.seen)
		}
		close(w.ticked)
		w.ticked = make(chan struct{})
	}()
	sent, got, err := w.send(ctx)
	if err != nil {
		return err
	}
	if len(got) == 0 {
		return fmt.Errorf("wf.meta has no row: %w", protocol.ErrCorrupt)
	}
	if err := w.s.matches(Meta{int(readLong(got[0][0])), int(readLong(got[0][1])), string(got[0][2])}); err != nil {
		w.s.refuse(err)
		return err
	}
	if w.doubtful() {
		if err := w.recheck(ctx); err != nil {
			return err
		}
	}
	w.heard(sent, got)
	if err := w.settleDoubts(ctx); err != nil {
		return err
	}
	return w.forgetDead(ctx)
}

// send sends a beat. A connection that the server ended meanwhile is replaced once.
func (w *worker) send(ctx context.Context) (sent time.Time, got rows, err error) {
	for again := w.c != nil; ; again = false {
		if w.c == nil {
			if w.c, err = w.s.connect(ctx, true); err != nil {
				w.c = nil
				return sent, nil, err
			}
		}
		sent = time.Now()
		got, err = w.c.query(ctx, sendBeat, bytea(w.s.by), text(w.host), integer(int32(w.pid)), integer(writer), integer(int32(w.lease.Milliseconds())), texts(w.having(nil)))
		if err == nil {
			return sent, got, nil
		}
		w.c.close()
		w.c = nil
		if !again || ctx.Err() != nil {
			return sent, nil, err
		}
	}
}

// heard notes that a beat was acknowledged, and those of others.
func (w *worker) heard(sent time.Time, got rows) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = sent
	if w.firm == nil {
		w.firm, w.age = context.WithCancelCause(context.Background())
	}
	left := w.agesAfter() - time.Since(sent)
	if w.timer == nil {
		w.timer = time.AfterFunc(left, w.grow)
	} else {
		w.timer.Reset(left)
	}
	for _, r := range got {
		if r[3] != nil && string(r[3]) != string(w.s.by) {
			w.note(string(r[3]), readLong(r[4]), time.Duration(readLong(r[5]))*time.Millisecond, sent)
		}
	}
}

// agesAfter is how long after its last beat what acts under the claims of a worker is ended.
func (w *worker) agesAfter() time.Duration { return w.lease * 2 / 3 }

// grow ends what acts, once the last beat is that old.
func (w *worker) grow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left := w.agesAfter() - time.Since(w.acked); left > 0 { // a beat came just then
		w.timer.Reset(left)
	} else if w.firm != nil {
		w.age(cas.ErrAged)
		w.firm = nil
	}
}

// doubtful reports whether others may have taken over what this worker has: it is aged, or its machine slept, in which time no
// clock of elapsed time went on.
func (w *worker) doubtful() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.firm == nil || time.Now().Round(0).Sub(w.acked.Round(0)) > w.agesAfter()
}

// note notes the beat of a worker, as a read saw it that has just ended; the caller holds mu. A sighting that was not looked at for long
// begins anew: meanwhile the database may have been away.
func (w *worker) note(id string, beat int64, lease time.Duration, began time.Time) {
	x, ok := w.seen[id]
	if !ok || x.beat != beat || began.Sub(x.last) > 2*w.lease/beatsPerLease {
		x = sighting{beat: beat, since: time.Now()}
	}
	x.last, x.lease = began, max(lease, w.lease)
	w.seen[id] = x
}

// dead reports whether what a worker has claimed may be taken over.
func (w *worker) dead(id string, beat int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x, ok := w.seen[id]
	return ok && x.beat == beat && x.last.Sub(x.since) >= x.lease
}

// deadOnes are the workers whose claims may be taken over.
func (w *worker) deadOnes() (ids [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, x := range w.seen {
		if x.last.Sub(x.since) >= x.lease {
			ids = append(ids, []byte(id))
		}
	}
	return ids
}

// forgetDead removes the rows of workers that are long dead.
func (w *worker) forgetDead(ctx context.Context) error {
	w.mu.Lock()
	dead := map[string]int64{}
	for id, x := range w.seen {
		if x.beat != none && x.last.Sub(x.since) >= forgetLeases*x.lease {
			dead[id] = x.beat
		}
	}
	w.mu.Unlock()
	for id, beat := range dead {
		if _, err := w.c.query(ctx, dropWorker, bytea([]byte(id)), long(beat)); err != nil {
			return err
		}
	}
	return nil
}

// end releases what is still claimed, and removes the row of this worker, where the database answers. The store is not used any more.
func (w *worker) end() {
	w.loop.Wait()
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.firm != nil {
		w.age(errClosed)
		w.firm = nil
	}
	for _, t := range w.trees { // nothing is driven any more
		w.doubts = append(w.doubts, doubt{t.root, t.token(), time.Now()})
	}
	w.mu.Unlock()
	if w.c == nil {
		return
	}
	defer w.c.close()
	ctx, cancel := context.WithTimeout(context.Background(), min(w.lease/beatsPerLease, 2*time.Second))
	defer cancel()
	if w.settleDoubts(ctx) != nil {
		return // all of it is taken over, as if this process had been killed
	}
	_, _ = w.c.query(ctx, dropWorker, bytea(w.s.by), long(none)) // likewise
}

// nameWorker names a worker for people; pid is 0 where it has no row any more.
func nameWorker(host string, pid int64) string {
	if host == "" && pid == 0 {
		return "a process that is gone"
	}
	return fmt.Sprintf("process %d on %s", pid, host)
}

// matches is nil for the meta row of this very store, which this program may write.
func (s *Store) matches(m Meta) error {
	if m.UUID != s.uuid {
		return protocol.ErrStore.With("name the right one with --store", "the store %s is there now, not %s", m.UUID, s.uuid)
	}
	return m.usable()
}

// refuse ends the use of the store for a reason that will not pass: batches that wait fail with it, as does what is asked later.
func (s *Store) refuse(err error) { s.end(fmt.Errorf("%s: %w", s.a.Shown, err)) }
