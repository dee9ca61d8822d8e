package pgstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"wf/cas"
	"wf/postgres"
	"wf/protocol"
)

// Options are how a store is opened; the zero value is right for most.
type Options struct {
	// Seal is the key of this user for derived values; see cas.Options.
	Seal []byte
	// Poll is how often commits of other processes are looked for while somebody waits for them; default 1 s.
	Poll time.Duration
	// Readers is how many connections read at once; default 4. Another one writes.
	Readers int
	// Lease is how long a process that drives runs is not heard of before another may take them over; default 30 s.
	Lease time.Duration
	// Outage is told once when the database is lost, with an error that wraps protocol.ErrUnreachable and names it without what is
	// secret, and with nil once it answers again. What was to be stored waits meanwhile. It must not block; nil is allowed.
	Outage func(error)
	// Now is the clock, unix µs, for moves that carry no time; default the system's.
	Now func() int64
}

// Store keeps blocks, heads and journals in a database. It may be used by many goroutines at once, and by many
// processes. Close it after use.
type Store struct {
	cas.Observed
	a    *postgres.Address
	o    Options
	uuid string
	by   []byte // names this process in changes

	turns chan struct{} // one for each connection that may read at once
	mu    sync.Mutex
	idle  []*conn

	queue   queue
	write   *conn           // of the committer alone
	life    context.Context // until Close
	end     context.CancelCauseFunc
	follows follower
	newest  newest
	worker  *worker
	outage  *outage
	orphans orphans
	bell    bell
	due     chan struct{} // holds a hint that runs are due
	seen    seen
	recent  recent
	marks   marks
}

var (
	_ protocol.Feed     = (*Store)(nil)
	_ cas.Backing       = (*Store)(nil)
	_ cas.DerivedReader = (*Store)(nil)
)

var errClosed = errors.New("the store is closed")

// Open opens the store in a database, which Init has made. Errors wrap protocol.ErrStore where there is none, or where its
// settings are not safe, ErrNewerStore, and ErrUnreachable.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	a, err := postgres.Parse(dsn)
	if err != nil {
		return nil, err
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.Lease <= 0 {
		o.Lease = 30 * time.Second
	}
	s := &Store{a: a, o: o, by: make([]byte, 8), turns: make(chan struct{}, o.Readers), due: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancelCause(context.Background())
	_, _ = rand.Read(s.by) // it never fails
	s.outage = newOutage(o.Outage)
	s.follows.ch, s.follows.turn = make(chan struct{}), make(chan struct{}, 1)
	s.newest.turn = make(chan struct{}, 1)
	if s.write, err = s.writer(ctx); err != nil {
		return nil, err
	}
	s.worker = newWorker(s)
	return s, nil
}

// connect opens a connection and looks at the store behind it: another one may answer at the same address now.
func (s *Store) connect(ctx context.Context, writes bool) (*conn, error) {
	want := postgres.Primary
	if writes {
		want = postgres.Writable
	}
	c, err := connect(ctx, s.a, want, func(ctx context.Context, c *postgres.Conn) error { return s.seen.check(ctx, &conn{c}, s.uuid) })
	if err != nil {
		return nil, err
	}
	if err := s.known(ctx, c, writes); err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w", s.a.Shown, classify(ctx, err))
	}
	return c, nil
}

// writer is a connection for the committer, which sends the same few statements again and again.
func (s *Store) writer(ctx context.Context) (*conn, error) {
	c, err := s.connect(ctx, true)
	if err != nil {
		return nil, err
	}
	if err := c.Prepares(ctx); err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w", s.a.Shown, classify(ctx, err))
	}
	return c, nil
}

// known is nil for a connection to this store that may be used.
func (s *Store) known(ctx context.Context, c *conn, writes bool) error {
	if writes {
		_, found, err := postgres.Settings(ctx, c.Conn)
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Fatal {
				return protocol.ErrStore.With("wf store check lists all settings", "%s", f)
			}
		}
	}
	m, there, err := metaOf(ctx, c, readMeta)
	switch {
	case err != nil:
		return err
	case !there:
		return errNoStore
	case s.uuid == "": // by Open, before others know the store
		if err := c.unspoiled(ctx); err != nil {
			return err
		}
		s.uuid = m.UUID
	}
	return s.matches(m)
}

// Close ends the use of the store. Batches that wait for a database that does not answer fail.
func (s *Store) Close() error {
	if !s.queue.close() {
		return nil
	}
	s.end(fmt.Errorf("%s: %w", s.a.Shown, errClosed))
	s.queue.idle.Wait()
	s.bell.loop.Wait()
	s.worker.end()
	if s.write != nil {
		s.write.close()
	}
	for range cap(s.turns) {
		s.turns <- struct{}{} // what is read ends first
	}
	for _, c := range s.idle {
		c.close()
	}
	return nil
}

// IDLength is how many characters the ids of new runs have; see engine.Store.
func (s *Store) IDLength() int { return cas.LongID }

// Dir names the store: it has no directory.
func (s *Store) Dir() string { return "postgres:" + s.uuid }

// query performs one statement, and waits for a lost database where the context is patient.
func (s *Store) query(ctx context.Context, sql string, params ...param) (rows, error) {
	return patiently(ctx, s, func() (rows, error) { return s.queryNow(ctx, sql, params...) })
}

// queryNow performs one statement.
func (s *Store) queryNow(ctx context.Context, sql string, params ...param) (out rows, err error) {
	err = s.on(ctx, func(c *conn) (_ bool, err error) {
		out, err = c.query(ctx, sql, params...)
		return false, err
	})
	return out, err
}

// each is query for an answer of any length: f is given its rows one after another. They are gone when f returns.
func (s *Store) each(ctx context.Context, f func(row [][]byte) error, sql string, params ...param) error {
	return s.on(ctx, func(c *conn) (begun bool, err error) { return c.each(ctx, f, sql, params...) })
}

// on has f read over a connection. One that the server ended meanwhile is replaced once, unless f had begun to work.
func (s *Store) on(ctx context.Context, f func(c *conn) (begun bool, err error)) error {
	select {
	case <-s.life.Done():
		return context.Cause(s.life)
	default:
	}
	select {
	case s.turns <- struct{}{}:
	case <-s.life.Done():
		return context.Cause(s.life)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turns }()
	for {
		c, used := s.pick()
		if !used {
			var err error
			if c, err = s.connect(ctx, false); err != nil {
				return err
			}
		}
		begun, err := f(c)
		if c.Closed() {
			c.close()
			s.follows.lost.Store(true)
			if used && !begun && ctx.Err() == nil {
				continue
			}
		} else {
			s.mu.Lock()
			s.idle = append(s.idle, c)
			s.mu.Unlock()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.a.Shown, classify(ctx, err))
		}
		return nil
	}
}

// pick takes a connection that is not in use; false where there is none.
func (s *Store) pick() (*conn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c, true
	}
	return nil, false
}

// Block gives a block, with its hash checked; see protocol.Blocks.
func (s *Store) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	got, err := s.query(ctx, `select data, packed from wf.held($1)`, bytea(l.Bytes()))
	none := protocol.ErrNotFound
	for _, r := range got {
		data, bad := unpacked(l, r[0], yes(r[1]))
		if bad == nil {
			return data, nil
		}
		if !errors.Is(bad, none) {
			err = bad
		}
	}
	return nil, fmt.Errorf("block %s: %w", l, cmp.Or(err, error(none)))
}

// Head reads a head; one that does not exist is the zero Head and no error.
func (s *Store) Head(ctx context.Context, name string) (h cas.Head, err error) {
	got, err := s.query(ctx, `select name, cid, seq, ts from wf.heads where name = $1 and cid is not null`, text(name))
	if err != nil || len(got) == 0 {
		return h, err
	}
	return headOf(got[0])
}

// Heads lists the heads with names that begin with prefix, by name.
func (s *Store) Heads(ctx context.Context, prefix string) ([]cas.Head, error) {
	return s.heads(ctx, under("name"), prefixed(prefix)...)
}

// heads are those that meet a condition, by name.
func (s *Store) heads(ctx context.Context, where string, params ...param) ([]cas.Head, error) {
	got, err := s.query(ctx, `select name, cid, seq, ts from wf.heads where `+where+` and cid is not null order by name`, params...)
	if err != nil {
		return nil, err
	}
	var out []cas.Head
	for _, r := range got {
		h, err := headOf(r)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func headOf(r [][]byte) (cas.Head, error) {
	l, err := protocol.CastLink(r[1])
	if err != nil {
		return cas.Head{}, fmt.Errorf("head %s: its value %x is no link: %w", r[0], r[1], protocol.ErrCorrupt)
	}
	return cas.Head{Name: string(r[0]), Link: l, Seq: protocol.Seq(readLong(r[2])), TS: readLong(r[3])}, nil
}

// Tip is the newest event of a run; see protocol.Feed.
func (s *Store) Tip(ctx context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error) {
	h, err := s.Head(ctx, protocol.RunHead(run))
	if err == nil && !h.Link.Defined() {
		err = s.absent(ctx, run)
	}
	return h.Link, h.Seq, err
}

// absent says why a run has no head.
func (s *Store) absent(ctx context.Context, run protocol.RunID) error {
	t, err := cas.Tombstone(ctx, s, run)
	switch {
	case err != nil:
		return err
	case t == nil:
		return fmt.Errorf("run %s: %w", run, protocol.ErrUnknownRun)
	}
	return t.Error()
}

// Derived reads a derived value; see cas.Store.Derived.
func (s *Store) Derived(ctx context.Context, key string) (d cas.Derived, sealed bool, err error) {
	got, err := s.query(ctx, `select value from wf.derived where key = $1`, text(key))
	if err == nil && len(got) > 0 {
		d, sealed = cas.ParseDerived(s.o.Seal, key, got[0][0])
	}
	return d, sealed, err
}

// Base is the run that a fork shares its first events with, and the last event that they share; "" for none.
func (s *Store) Base(ctx context.Context, run protocol.RunID) (base protocol.RunID, shared protocol.Seq, err error) {
	got, err := s.query(ctx, `select base, shared from wf.heads where name = $1 and cid is not null and base is not null`, text(protocol.RunHead(run)))
	if err != nil || len(got) == 0 {
		return "", 0, err
	}
	return protocol.RunOf(string(got[0][0])), protocol.Seq(readLong(got[0][1])), nil
}

// Forks are the runs that share events of a run, by id.
func (s *Store) Forks(ctx context.Context, run protocol.RunID) (out []cas.Sharer, err error) {
	got, err := s.query(ctx, `select name, shared from wf.heads where base = $1 and cid is not null order by name`, text(protocol.RunHead(run)))
	for _, r := range got {
		out = append(out, cas.Sharer{Run: protocol.RunOf(string(r[0])), Seq: protocol.Seq(readLong(r[1]))})
	}
	return out, err
}

// A fork has its row locked in the order of names, as by a commit.
const setBases = `with t as materialized (select h.name, t.base, t.shared from unnest($1::text[], $2::text[], $3::bigint[]) t(fork, base, shared) join wf.heads h on h.name = t.fork
		where h.cid is not null and h.base is null and exists (select from wf.heads b where b.name = t.base and b.cid is not null) order by h.name for no key update of h)
	update wf.heads h set base = t.base, shared = t.shared from t where h.name = t.name`

// SetBases notes what forks share with runs; see cas.Store.SetBases.
func (s *Store) SetBases(ctx context.Context, all []cas.Kinship) error {
	for part := range slices.Chunk(all, pageRows) {
		forks, bases := make([]string, len(part)), make([]string, len(part))
		for i, x := range part {
			forks[i], bases[i] = protocol.RunHead(x.Fork), protocol.RunHead(x.Base)
		}
		if _, err := s.query(ctx, setBases, texts(forks), texts(bases), longs(len(part), func(i int) (int64, bool) { return int64(part[i].Shared), false })); err != nil {
			return err
		}
	}
	return nil
}

// Journal opens the journal of a run; see cas.OpenJournal.
func (s *Store) Journal(ctx context.Context, run protocol.RunID) (*cas.Journal, error) {
	return cas.OpenJournal(ctx, s, run)
}

// storable reports whether PostgreSQL takes a text as it is.
func storable(s string) bool { return !strings.ContainsRune(s, 0) && strings.ToValidUTF8(s, "") == s }
