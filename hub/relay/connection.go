package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"wf/hub/guard"
	"wf/hub/seal"
	"wf/protocol"
)

// connection is one link, at the worker.
type connection struct {
	worker *Worker
	lines  *lines

	heartbeat, ttl time.Duration // as the hub says

	told map[protocol.RunID]Run // what the hub knows
	caps []string

	mu    sync.Mutex
	asked map[question]chan message
}

// question is a lease that the hub is asked about.
type question struct {
	job   string
	epoch uint64
}

// register introduces the worker and tells of all its runs.
func (s *connection) register(ctx context.Context) error {
	a := s.worker
	caps, err := a.Store.Caps(ctx)
	if err != nil {
		return err
	}
	s.caps = slices.Sorted(slices.Values(caps))
	hello := message{Type: msgRegister, Wire: wireVersion, Worker: a.ID, Instance: a.Process.instance,
		Name: a.Name, Version: a.Version, Caps: s.caps, Capacity: a.Capacity}
	if a.Identity != nil {
		hello.Key = a.Identity.Public()
	}
	if err := s.lines.send(hello); err != nil {
		return err
	}
	m, err := s.lines.next(dialTime)
	switch {
	case err != nil:
		return fmt.Errorf("the hub did not answer: %w", err)
	case m.Type == msgRefused:
		return &protocol.Error{Code: m.Code, Message: m.Message, Hint: "see the log of the hub"}
	case m.Type != msgRegistered || m.HeartbeatMS <= 0 || m.TTLMS <= m.HeartbeatMS:
		return fmt.Errorf("the hub answered with %q: %w", m.Type, protocol.ErrBadRequest)
	}
	s.heartbeat, s.ttl = time.Duration(m.HeartbeatMS)*time.Millisecond, time.Duration(m.TTLMS)*time.Millisecond
	s.told = map[protocol.RunID]Run{}
	if err := s.tellRuns(ctx); err != nil {
		return err
	}
	return s.lines.send(message{Type: msgReady})
}

// tellRuns tells of the runs that moved since the last time.
func (s *connection) tellRuns(ctx context.Context) error {
	runs, err := s.worker.Store.Runs(ctx)
	if err != nil {
		return err
	}
	var moved []Run
	for _, r := range runs {
		if s.told[r.ID] != r {
			moved = append(moved, r)
			s.told[r.ID] = r
		}
	}
	for part := range slices.Chunk(moved, runsPerLine) {
		if err := s.lines.send(message{Type: msgRuns, Runs: part}); err != nil {
			return err
		}
	}
	return nil
}

func (s *connection) tellCaps(ctx context.Context) error {
	caps, err := s.worker.Store.Caps(ctx)
	if err != nil {
		return err
	}
	if caps = slices.Sorted(slices.Values(caps)); slices.Equal(caps, s.caps) {
		return nil
	}
	s.caps = caps
	return s.lines.send(message{Type: msgCaps, Caps: caps})
}

// serve answers the hub until the link ends, and says why it did.
func (s *connection) serve(ctx context.Context, streams net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := guard.Server(s.worker.gate(s), s.worker.Log)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	var all sync.WaitGroup
	for _, part := range []func(context.Context) error{
		func(context.Context) error { return server.Serve(streams) },
		func(context.Context) error { return s.listen() },
		s.beat,
		s.follow,
	} {
		all.Go(func() { cancel(part(ctx)) })
	}
	<-ctx.Done()
	// Closing the control stream ends listen, closing the server ends its connections.
	err := errors.Join(s.lines.conn.Close(), streams.Close(), server.Close())
	all.Wait()
	if err != nil && !closed(err) {
		s.worker.Log.Debug("link to the hub closed", "error", err)
	}
	return context.Cause(ctx)
}

// beat sends the heartbeat.
func (s *connection) beat(ctx context.Context) error {
	tick := time.NewTicker(s.heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := s.lines.send(message{Type: msgHeartbeat}); err != nil {
				return err
			}
		}
	}
}

// follow tells the hub what changes in the store.
func (s *connection) follow(ctx context.Context) error {
	var seen uint64
	for {
		now, err := s.worker.Store.AwaitChange(ctx, seen)
		if err != nil {
			return err
		}
		seen = now
		if err := errors.Join(s.tellRuns(ctx), s.tellCaps(ctx)); err != nil {
			return err
		}
		sleep(ctx, s.worker.Debounce)
	}
}

// listen takes the messages of the hub. One that is silent for a TTL is gone.
func (s *connection) listen() error {
	for {
		m, err := s.lines.next(s.ttl)
		if err != nil {
			return fmt.Errorf("the hub is gone: %w", err)
		}
		switch m.Type {
		case msgConfirmed:
			s.mu.Lock()
			if c := s.asked[question{m.Job, m.Epoch}]; c != nil {
				c <- m
				delete(s.asked, question{m.Job, m.Epoch})
			}
			s.mu.Unlock()
		case msgMoved:
			s.worker.Log.Warn("a run belongs to another worker", "run", m.Run, "worker", m.To)
			if s.worker.Moved != nil {
				s.worker.Moved(m.Run, m.To)
			}
		case msgPass:
			if err := s.pass(m); err != nil {
				return err
			}
		case msgRefused:
			return &protocol.Error{Code: m.Code, Message: m.Message, Hint: "see the log of the hub"}
		}
	}
}

// pass seals the key of a box, which this worker has, to another worker. One that it cannot open stays as it is.
func (s *connection) pass(m message) error {
	if s.worker.Identity == nil {
		return nil
	}
	sealed, err := s.worker.Identity.Pass(seal.Job{ID: m.Job, Workflow: m.Workflow}, m.Sealed, m.Key)
	if err != nil {
		s.worker.Log.Warn("the key of a job is not passed on", "job", m.Job, "worker", m.To, "error", err)
		return nil
	}
	return s.lines.send(message{Type: msgPassed, Job: m.Job, To: m.To, Sealed: sealed})
}

// confirm asks the hub whether a lease holds, and until when, by this machine's own clock.
func (s *connection) confirm(ctx context.Context, q question) (until time.Time, err error) {
	answer := make(chan message, 1)
	s.mu.Lock()
	s.asked[q] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked[q] == answer {
			delete(s.asked, q)
		}
	}()
	asked := time.Now()
	if err := s.lines.send(message{Type: msgConfirm, Job: q.job, Epoch: q.epoch}); err != nil {
		return time.Time{}, err
	}
	select {
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case m := <-answer:
		if !m.OK {
			return time.Time{}, fmt.Errorf("job %s, lease %d: the hub says it has ended", q.job, q.epoch)
		}
		return asked.Add(time.Duration(m.LeftMS) * time.Millisecond), nil
	}
}

// identity is the client as the hub names it, with no more scopes than the worker allows.
func (a *Worker) identity(r *http.Request) guard.Identity {
	id := guard.Identity{Name: cmp.Or(r.Header.Get(headerBy), "hub")}
	for _, s := range strings.Fields(r.Header.Get(headerScopes)) {
		if slices.Contains(a.Scopes, guard.Scope(s)) {
			id.Scopes = append(id.Scopes, guard.Scope(s))
		}
	}
	return id
}
