package replay

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"wf/hub/guard"
	"wf/hub/internal/lately"
	"wf/hub/lists"
	"wf/protocol"
)

// Server serves the journals of a feed. Feed is set before use, the rest may stay zero; the
// methods are safe for concurrent use. Close it after use.
type Server struct {
	Feed   protocol.Feed
	Deltas protocol.Deltas // nil is no live output
	Lists  *lists.Board    // whose changes are reported; nil refuses a list_request

	Heartbeat    time.Duration // of a quiet subscription; default 15 s
	WriteTimeout time.Duration // for one frame; default 10 s. Then the client is too_slow
	PingEvery    time.Duration // default 20 s; two that are not answered end the socket
	// Sockets are open at once, streams over HTTP included; default protocol.MaxSockets. A quarter of them may be of one
	// client, three quarters of an owner, for whom an eighth is kept.
	Sockets       int
	Subscriptions int // of one socket; default protocol.MaxSubscriptions

	once     sync.Once
	notifier notifier
	cache    lately.Map[protocol.Link, []byte] // the JSON of events that several clients read: no fork can make it wrong
	shelf    shelf
	ctx      context.Context
	stop     context.CancelCauseFunc

	places guard.Places // of sockets and streams

	mu     sync.Mutex
	closed bool
	idle   sync.WaitGroup
}

func (s *Server) init() {
	s.once.Do(func() {
		s.ctx, s.stop = context.WithCancelCause(context.Background())
		s.notifier.feed = s.Feed
		s.cache.Max, s.shelf.batches.Max = cacheBytes, shelfBytes
		s.places = guard.PlacesOfStreams(cmp.Or(s.Sockets, protocol.MaxSockets))
	})
}

// enter counts the client of a request in; leave counts it out. The error is rate_limited or shutting_down.
func (s *Server) enter(r *http.Request) (leave func(), err error) {
	s.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, protocol.ErrShuttingDown
	}
	place, err := s.places.Take(guard.HolderOf(r.Context()), true, nil)
	if err != nil {
		return nil, err
	}
	s.idle.Add(1)
	return func() {
		place.Leave()
		s.idle.Done()
	}, nil
}

// Close tells every client that the server stops, ends their streams and waits for that. Nothing
// is lost: they come back with the last seq they have.
func (s *Server) Close() error {
	s.init()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(protocol.ErrShuttingDown)
	s.idle.Wait()
	s.notifier.gone.Wait()
	if s.Lists != nil {
		s.Lists.Close()
	}
	return nil
}

// WebSocket serves GET /v1/replay. It checks neither Host nor Origin nor a token: the server
// around it does that before, see hub/guard.
func (s *Server) WebSocket() http.Handler { return http.HandlerFunc(s.serveSocket) }

// Events serves GET /v1/sessions/{id}/events, with the run as path value "id": as a stream of
// server-sent events, or as NDJSON for Accept: application/x-ndjson.
func (s *Server) Events() http.Handler { return http.HandlerFunc(s.serveEvents) }
