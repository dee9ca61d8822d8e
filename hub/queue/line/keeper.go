// Package line has the jobs of a queue in memory, in their order, and says what becomes of them. It is the state
// machine of package queue for every kind of it; what makes jobs durable is its Keeper.
//
//	call ──Begin──► turn ──News──► memory ──decide──► Write ──► Keeper
//	                                 ▲                  │ durable
//	                                 └──────────────────┘
//
// # Words
//
//	turn     a call's time with the jobs: it hears what others have changed, and changes them alone
//	number   that of a submission; jobs of one priority leave by it
//
// Two things are not written at once, because each process comes to them by itself: that a lease lapsed follows from its
// time, and that a box is too old from when it came.
package line

import (
	"context"
	"time"

	"wf/hub/queue"
)

// A Record is a job as it is kept.
type Record struct {
	queue.Entry
	Number uint64            `json:"number"`
	TTL    time.Duration     `json:"ttl"`   // of the lease
	Until  time.Time         `json:"until"` // leased: when it lapses; queued: not before
	Unsure bool              `json:"unsure,omitempty"`
	Given  []string          `json:"given,omitempty"`
	Keys   []queue.Key       `json:"keys,omitempty"`
	Size   int               `json:"size,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
	Gone   bool              `json:"-"` // there is no such job any more
}

// A Change is what a turn writes.
type Change struct {
	Jobs []Record // in the place of what was kept under their ids; one without keys loses its box
	Box  []byte   // of the first of them, where that is new
	Drop []Record // forgotten, with their boxes, before Jobs are written
}

// A Keeper makes jobs durable. Other processes may have a Keeper over the same jobs.
type Keeper interface {
	// Begin begins a turn. Where it changes something, no other process does so until it ends.
	Begin(ctx context.Context, changes bool) (Turn, error)
	// Box reads the box of the job with a number; nil is none.
	Box(ctx context.Context, number uint64) ([]byte, error)
	// Now is the time of turns, as well as it is known without one: not later than that of the next.
	Now() time.Time
}

// A Turn is used by one goroutine.
type Turn interface {
	Now() time.Time
	// News are the jobs that others changed since the last turn of this Keeper. all says that they are all there are.
	News() (jobs []Record, all bool)
	// Last are the numbers of the newest submission and of the newest lease.
	Last() (number, epoch uint64)
	// Write makes a change durable. It is called once at most, and in a turn that changes. After an error it is not known
	// whether it was written; the next turn tells.
	Write(Change) error
	// End ends the turn.
	End()
}
