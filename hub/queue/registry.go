package queue

import (
	"context"
	"time"

	"wf/protocol"
)

// ErrWorkerLive is a worker that is connected.
var ErrWorkerLive = &protocol.Error{Code: "agent_connected", Message: "the worker is connected", Hint: "stop it first: it would be back at once"}

// A Worker is a process that drives runs.
type Worker struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Caps    []string  `json:"caps"` // workflows that it can start, sorted
	Runs    int       `json:"runs"` // that it has
	Since   time.Time `json:"since"`
	Seen    time.Time `json:"last_seen"`
	Live    bool      `json:"connected"` // its last word holds still
	// Elsewhere is set for one that lives at another hub that shares the registry.
	Elsewhere bool `json:"-"`
	// Capacity is how many runs it drives at once for jobs to be given to it, 0 for any number; Busy is how many it drives.
	Capacity int `json:"capacity"`
	Busy     int `json:"busy"`
	// Draining is set by Drain: it gets no jobs.
	Draining bool `json:"draining"`
	// Key is the public key to which jobs are sealed for it; none of an older version of wf.
	Key []byte `json:"-"`
	// Instance is its process, as the process says.
	Instance string `json:"-"`
}

// Registry knows the workers. A worker lives for the ttl of its last word, at any of the hubs that share the registry; later it is still
// listed, as one that is gone, until it is forgotten.
type Registry interface {
	// Announce adds a worker or refreshes it. Since is kept while it lives, and Draining always; Since, Seen, Live, Elsewhere
	// and Draining of the argument do not matter. draining says whether it gets jobs no longer.
	Announce(ctx context.Context, a Worker, ttl time.Duration) (draining bool, err error)
	// Withdraw says that a worker is gone from this hub before its ttl has passed. An unknown one is no error.
	Withdraw(ctx context.Context, id string) error
	// Drain says whether a worker gets jobs. An unknown one is an error wrapping protocol.ErrNotFound.
	Drain(ctx context.Context, id string, drain bool) error
	// Forget takes a worker out that is gone. One that lives is an error wrapping ErrWorkerLive, an unknown one
	// wraps protocol.ErrNotFound.
	Forget(ctx context.Context, id string) error
	// List gives the workers by name, then id; a list of none is not nil.
	List(ctx context.Context) ([]Worker, error)
}
