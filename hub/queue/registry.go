package queue

import (
	"context"
	"time"
)

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
}

// Registry knows the workers. A worker lives for the ttl of its last word; later it is still
// listed, as one that is gone, until it is forgotten.
type Registry interface {
	// Announce adds a worker or refreshes it. Since is kept while it lives; Since, Seen and
	// Live of the argument do not matter.
	Announce(ctx context.Context, a Worker, ttl time.Duration) error
	// Withdraw says that a worker is gone before its ttl has passed. An unknown one is no error.
	Withdraw(ctx context.Context, id string) error
	// List gives the workers by name, then id; a list of none is not nil.
	List(ctx context.Context) ([]Worker, error)
}
