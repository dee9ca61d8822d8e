package relay

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/seal"
	"wf/protocol"
)

// A Store is what a worker tells its hub of. Implementations are safe for concurrent use.
type Store interface {
	// Caps are the names under which workflows can be started here.
	Caps(ctx context.Context) ([]string, error)
	// Runs are all runs with their heads.
	Runs(ctx context.Context) ([]Run, error)
	// AwaitChange returns another number than since as soon as runs or caps may have changed.
	AwaitChange(ctx context.Context, since uint64) (uint64, error)
}

// Worker dials out to a hub and serves what comes from there; one that has several hubs is a Worker for each, with one Process and
// one ID. The fields are set once, before Serve.
type Worker struct {
	Hub   string                 // http://host:port, https://…, or unix:PATH
	Token func() (string, error) // of the scope worker; asked at each dial
	TLS   *tls.Config            // for https, with a certificate of its own for mTLS; nil is the system's

	ID      string // stays the same over restarts, and differs from every other worker's
	Name    string // for people
	Version string

	// Identity opens the boxes of jobs; nil is for a worker that gets none.
	Identity *seal.Identity
	// Capacity is how many runs may be driven here when the hub gives it a job; 0 is any number.
	Capacity int

	Handler http.Handler  // the API, as it is served locally; requests carry an identity
	Scopes  []guard.Scope // what the hub may do here at most; default read, run and answer
	Store   Store
	// Moved is called when a run that a job started here is another worker's now: its lease had
	// ended. nil is for a worker that starts no jobs.
	Moved func(run protocol.RunID, to string)

	Log *slog.Logger // nil discards it
	// Debounce is how long changes of the store are gathered before they are sent to the hub; default
	// 200 ms.
	Debounce time.Duration

	// Process is shared by the Workers that connect one worker to several hubs; nil is one of its own.
	Process *Process
}

var discard = slog.New(slog.DiscardHandler)

// How long a worker waits before it dials again, after n failures in a row: between 0 and
// firstWait · 2ⁿ, and never more than LongestWait.
const (
	firstWait   = 250 * time.Millisecond
	LongestWait = 5 * time.Second
)

// Serve dials the hub, again and again, until ctx ends; then it returns nil. Only what no
// later try can cure is an error: a Worker that lacks something.
func (a *Worker) Serve(ctx context.Context) error {
	if err := a.prepare(); err != nil {
		return err
	}
	for failures := 0; ctx.Err() == nil; {
		began, err := a.connect(ctx)
		if began {
			failures = 0
		}
		if ctx.Err() != nil {
			break
		}
		wait := mrand.N(min(firstWait<<min(failures, 10), LongestWait))
		failures++
		a.Log.Warn("no connection to the hub", "hub", a.Hub, "error", err, "fix", fixOf(err), "again in", wait.Round(time.Millisecond))
		sleep(ctx, wait)
	}
	return nil
}

// fixOf is what helps a worker that is not connected.
func fixOf(err error) string {
	if errors.Is(err, protocol.ErrUnauthorized) || errors.Is(err, protocol.ErrForbidden) {
		return "wf hub prints where the token of its workers lies; name that file with --hub-token-file"
	}
	return protocol.HintOf(err)
}

func (a *Worker) prepare() error {
	switch {
	case a.ID == "" || !queue.Plain(a.ID, 128):
		return fmt.Errorf("worker id %.140q: want 1 to 128 printable characters: %w", a.ID, protocol.ErrUsage)
	case a.Handler == nil || a.Store == nil:
		return errors.New("relay: a worker needs a Handler and a Store")
	}
	a.Log = cmp.Or(a.Log, discard)
	if a.Scopes == nil {
		a.Scopes = []guard.Scope{guard.Read, guard.Run, guard.Answer}
	}
	a.Debounce = cmp.Or(a.Debounce, 200*time.Millisecond)
	if a.Process == nil {
		a.Process = NewProcess()
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// dialTime is how long the hub may take to answer.
const dialTime = 10 * time.Second

// connect holds one link. began reports whether the hub took the worker.
func (a *Worker) connect(ctx context.Context) (began bool, err error) {
	base, via, err := client.Reach(a.Hub, a.TLS)
	if err != nil {
		return false, err
	}
	defer via.CloseIdleConnections()
	head := http.Header{}
	if a.Token != nil {
		token, err := a.Token()
		if err != nil {
			return false, err
		}
		head.Set("Authorization", "Bearer "+token)
	}
	dial, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	c, answer, err := websocket.Dial(dial, base+WorkerPath, &websocket.DialOptions{
		HTTPClient: via, HTTPHeader: head, Subprotocols: []string{Subprotocol},
	})
	if err != nil {
		return false, client.Refusal(answer, err)
	}
	defer c.CloseNow()
	if c.Subprotocol() != Subprotocol {
		return false, fmt.Errorf("%s is no hub: it does not speak %s: %w", a.Hub, Subprotocol, protocol.ErrBadRequest)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tunnel, err := newTunnel(ctx, c, false, a.Log)
	if err != nil {
		return false, err
	}
	defer tunnel.Close()
	control, err := tunnel.Open()
	if err != nil {
		return false, err
	}
	s := &connection{worker: a, lines: newLines(control), asked: map[question]chan message{}}
	if err := s.register(ctx); err != nil {
		return false, err
	}
	defer a.Process.connected(s)()
	a.Log.Info("registered with the hub", "hub", a.Hub, "worker", a.ID)
	return true, s.serve(ctx, tunnel)
}

// closed reports whether an error says no more than that a connection ended.
func closed(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled)
}
