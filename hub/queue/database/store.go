// Package database keeps a queue, a registry and pointers in a PostgreSQL database, for hubs that serve one fleet.
//
//	hub ──turn──► meta, locked ──► jobs that others changed ──► memory ──decide──► jobs, meta, COMMIT
//	hub ──one statement──► workers, links, pointers
//
// # Words
//
//	version  the number of a change of jobs. A turn that changes jobs holds the row of meta, so that versions become
//	         visible in their order: a hub that has heard one has missed none before it
//	link     that a worker is connected to a hub, until a time
//
// # Promised
//
// A job is leased to one worker at a time, whichever hub gives it: a turn decides by what is committed, and by the clock of the
// server. No clock of a hub decides anything; a lease that lapsed is any hub's to give. A hub that hangs in a turn is cut off after
// five seconds, and has changed nothing.
//
// # Not promised
//
// That two hubs know at the same moment which workers are there. That a clock of the server which jumps forward ends no lease early: the
// pointer of the run then decides which worker keeps it.
package database

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"wf/hub/queue"
	"wf/hub/queue/line"
	"wf/postgres"
	"wf/protocol"
)

// Options are how a queue is opened; the zero value is right for most.
type Options struct {
	// Poll is how often changes of other hubs are looked for that did not announce themselves; default 1 s.
	Poll time.Duration
	// Outage is called once with the error when the database is lost, and with nil once it answers again. It must not block; nil is
	// allowed.
	Outage func(error)

	now func() time.Time // in the place of the server's clock, in tests
}

// Store holds the three parts of what a hub keeps.
type Store struct {
	Queue    *line.Queue
	Registry *Registry
	Pointers *Pointers
	// DigestKey is that of the digests of requests, for all hubs of the database.
	DigestKey []byte

	a    *postgres.Address
	o    Options
	uuid string
	hub  []byte // names this process

	life context.Context // until Close
	end  context.CancelCauseFunc
	all  sync.WaitGroup // what goes on beside

	turns chan struct{} // one for each connection that may be in use
	mu    sync.Mutex
	idle  []*postgres.Conn
	lost  error     // why the last one could not be made, nil where it could
	tried time.Time // when that was
}

// connections that are in use at once.
const connections = 4

// Open opens the queue in a database, and makes it where there is none. Errors wrap protocol.ErrStore where the address or the settings
// of the database are not right, protocol.ErrReadOnly where rights are missing, ErrNewerStore, and ErrUnreachable.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	a, err := postgres.Parse(dsn)
	if err != nil {
		return nil, err
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	m, err := prepare(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("hub data %s: %w", a.Shown, err)
	}
	s := &Store{a: a, o: o, uuid: m.uuid, DigestKey: m.digest, hub: make([]byte, 8), turns: make(chan struct{}, connections)}
	_, _ = rand.Read(s.hub) // it never fails
	s.life, s.end = context.WithCancelCause(context.Background())
	s.Queue = line.New(&keeper{s: s})
	s.Registry, s.Pointers = newRegistry(s), &Pointers{s}
	if err := s.Queue.Sync(ctx); err != nil {
		return nil, fmt.Errorf("hub data: %w", err)
	}
	if o.now == nil {
		s.follow()
	}
	return s, nil
}

// Close ends the use. Waiting calls get queue.ErrClosed. Workers of this hub are gone for the others.
func (s *Store) Close() error {
	select {
	case <-s.life.Done():
		return nil
	default:
	}
	s.Queue.Close()
	s.Registry.leave() // if it fails they are gone when their time has passed
	s.end(queue.ErrClosed)
	s.all.Wait()
	for range cap(s.turns) {
		s.turns <- struct{}{} // what is read ends first
	}
	for _, c := range s.idle {
		c.Close()
	}
	return nil
}

// connect opens a connection to the primary, and looks at what is behind it: another database may answer at the same address now.
func (s *Store) connect(ctx context.Context) (*postgres.Conn, error) {
	c, err := s.a.Connect(ctx, postgres.Writable, nil)
	if err != nil {
		return nil, err
	}
	var m meta
	if err = safe(ctx, c); err == nil {
		m, err = metaOf(ctx, c)
	}
	if err == nil && m.uuid != s.uuid {
		err = protocol.ErrStore.With("start the hub anew if that is meant", "another queue than before lies at this address")
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", s.a.Shown, explain(postgres.Classify(ctx, err)))
	}
	return c, nil
}

// Times of what is asked.
const (
	patience = 10 * time.Second // that a statement may take
	rest     = time.Second      // for which a database that did not answer is not asked again
)

// take takes a connection, which the caller gives back. fresh is set for one that is new.
func (s *Store) take(ctx context.Context) (c *postgres.Conn, fresh bool, err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	if s.life.Err() != nil {
		<-s.turns
		return nil, false, queue.ErrClosed
	}
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		c, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	err = s.lost
	resting := err != nil && time.Since(s.tried) < rest
	s.mu.Unlock()
	if c != nil {
		return c, false, nil
	}
	if !resting {
		c, err = s.connect(ctx)
		s.note(err)
	}
	if err != nil {
		<-s.turns
		return nil, false, err
	}
	return c, true, nil
}

// note notes how it went to reach the database.
func (s *Store) note(err error) {
	s.mu.Lock()
	was := s.lost
	s.lost, s.tried = err, time.Now()
	s.mu.Unlock()
	if tell := s.o.Outage; tell != nil && (was == nil) != (err == nil) && s.life.Err() == nil {
		tell(err)
	}
}

// give gives a connection back, and says what its error means.
func (s *Store) give(ctx context.Context, c *postgres.Conn, err error) error {
	if c.Closed() {
		c.Close()
	} else {
		s.mu.Lock()
		s.idle = append(s.idle, c)
		s.mu.Unlock()
	}
	<-s.turns
	if err != nil {
		return fmt.Errorf("%s: %w", s.a.Shown, explain(postgres.Classify(ctx, err)))
	}
	return nil
}

var errPatience = protocol.ErrUnreachable.With("", "the database does not answer")

// patiently bounds what a call may take, and ends it with the store. A caller that leaves earlier does not end it: that would end the
// connection, and all jobs were read anew.
func (s *Store) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), patience, errPatience)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// query performs one statement. One that only reads, or that does no harm twice, is performed again where the server ended the connection meanwhile.
func (s *Store) query(ctx context.Context, sql string, params ...postgres.Param) (postgres.Rows, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ctx, cancel := s.patiently(ctx)
	defer cancel()
	for {
		c, fresh, err := s.take(ctx)
		if err != nil {
			return nil, err
		}
		got, failed := c.Query(ctx, sql, params...)
		ended := c.Closed()
		if err = s.give(ctx, c, failed); err == nil || !ended || fresh || ctx.Err() != nil {
			return got, err
		}
	}
}

// clock is the first parameter of statements that need the time: that of the server, unless there is another one.
func (s *Store) clock() postgres.Param {
	if s.o.now == nil {
		return postgres.Param{OID: postgres.OIDInt8}
	}
	return postgres.Long(s.o.now().UnixMicro())
}

// now is the time of a statement, by its first parameter, in unix µs.
const now = `coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000000)::bigint)`

// open is nil for a store that is not closed.
func (s *Store) open(ctx context.Context) error {
	if s.life.Err() != nil {
		return queue.ErrClosed
	}
	return ctx.Err()
}
