package queue

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"wf/protocol"
)

// Attempts is how often a job is leased before it is dead.
const Attempts = 5

// What goes wrong with jobs and pointers.
var (
	ErrUnknownJob = &protocol.Error{Code: "unknown_job", Message: "no such job", Hint: "wf hub jobs lists them; to submit it again with the same id is safe"}
	ErrBadJob     = protocol.ErrBadRequest.With("an id has 1 to 128 printable characters, a workflow has a name, a priority is from -9 to 9", "not a job")
	ErrLeaseLost  = &protocol.Error{Code: "lease_lost", Message: "the lease has ended", Hint: "start nothing: the job may be another worker's"}
	ErrBodyGone   = &protocol.Error{Code: "body_gone", Message: "what the job starts is no longer kept", Hint: "submit it again with the same request id"}
	ErrBegun      = &protocol.Error{Code: "job_begun", Message: "the job is no longer in the queue", Hint: "wf cancel ends the run that it becomes"}
	ErrSwapped    = &protocol.Error{Code: "pointer_swapped", Message: "the pointer is not what it was", Hint: "read it again"}
	ErrClosed     = &protocol.Error{Code: "queue_closed", Message: "the queue is closed", Hint: "the hub ends; submit again when it is back"}
)

// MaxPriority of a job, and -MaxPriority the least.
const MaxPriority = 9

// A Job is the wish to start a run of a workflow. ID is the request id of the run.
type Job struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Priority int    `json:"priority"` // larger ones first; 0 is usual
}

// Check is an error wrapping ErrBadJob for a job that no queue takes.
func (j Job) Check() error {
	if j.ID == "" || !Plain(j.ID, 128) {
		return fmt.Errorf("id %.140q: %w", j.ID, ErrBadJob)
	}
	if j.Workflow == "" || !Plain(j.Workflow, 512) {
		return fmt.Errorf("job %s: workflow %.520q: %w", j.ID, j.Workflow, ErrBadJob)
	}
	if j.Priority < -MaxPriority || j.Priority > MaxPriority {
		return fmt.Errorf("job %s: priority %d: %w", j.ID, j.Priority, ErrBadJob)
	}
	return nil
}

// A Sealed is what a job starts, as a queue keeps it: it cannot be read with what is here.
type Sealed struct {
	Box    []byte            // the request under a key of its own
	Keys   []Key             // that key, for each worker that may have it
	Digest map[string]string // of the parts of the request, by a key of the hub; it tells whether another request is the same
}

// A Key is that of a box, sealed to a worker.
type Key struct {
	Worker string `json:"worker"`
	To     string `json:"to"` // names the public key of the worker
	Sealed []byte `json:"sealed"`
}

// Plain reports whether s has printable characters alone, and at most so many bytes.
func Plain(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == utf8.RuneError })
}

// State is where a job stands.
type State string

// The states of a job; the picture is in the comment of the package.
const (
	Queued State = "queued"
	Leased State = "leased"
	Done   State = "done"
	Dead   State = "dead"
)

// Why a job is dead that no worker refused.
const (
	WhyCancelled   = "cancelled"    // it was taken out of the queue
	WhyNoRecipient = "no_recipient" // all workers that could open it were forgotten
	WhyExpired     = "expired"      // it has waited for as long as a queue keeps a box
	WhyLapsed      = "lapsed"       // the lease of the last attempt
)

// KeepBox is for how long a box is kept at most.
const KeepBox = 7 * 24 * time.Hour

// An Entry is a job with its state.
type Entry struct {
	Job
	State State     `json:"state"`
	Since time.Time `json:"since"` // of the state
	// Submitted is when it came first.
	Submitted time.Time      `json:"submitted"`
	Attempts  int            `json:"attempts"`      // leases so far
	Worker    string         `json:"agent"`         // that holds the lease, or held the last one
	Epoch     uint64         `json:"epoch"`         // of that lease, 0 before the first
	Run       protocol.RunID `json:"run,omitempty"` // what it became, when done
	Why       string         `json:"why,omitempty"` // code of what ended the last lease
	// Reason is why a queued job is not leased now, as the hub sees it; a queue leaves it empty.
	Reason string `json:"reason,omitempty"`
	// Unsure is a job of which a lease ended without a word: a worker may have started it.
	Unsure bool              `json:"-"`
	Given  []string          `json:"-"` // workers that had a lease of it
	Keys   []Key             `json:"-"` // of its box; none where that is gone
	Size   int               `json:"-"` // bytes of the box
	Digest map[string]string `json:"-"`
}

// Stats are counts of a queue.
type Stats struct {
	Queued, Leased, Dead int
	Oldest               time.Time // submission of the oldest queued job; zero where there is none
	Bytes                int64     // of all boxes
	Leases, Lapses       uint64    // leases given, and those that were seen to lapse, by this process
	Epoch                uint64    // of the newest lease
}

// Queue hands out jobs, those with the largest priority first, and those of one priority in the order in which they were
// submitted. All methods are safe for concurrent use, and what they return is durable.
//
// The box of a job is gone once it is done, cancelled or purged, and KeepBox after it came: a job that was not done
// by then is dead. A job without a box is never leased.
type Queue interface {
	// Submit puts a job behind the others of its priority. A job with an id that is known is left as it is, whatever
	// its workflow; fresh is then false. A job that fails Check is refused.
	Submit(ctx context.Context, j Job, s Sealed) (e Entry, fresh bool, err error)
	// Resubmit replaces a dead job by another one with its id, which is fresh. Any other job is left as it is.
	Resubmit(ctx context.Context, j Job, s Sealed) (Entry, error)
	// Box reads what Submit was given. Where that is gone the error wraps ErrBodyGone.
	Box(ctx context.Context, id string) ([]byte, error)
	// Share adds the key of a box for a further worker, or in place of an older one of that worker. A job
	// that is over is left as it is.
	Share(ctx context.Context, id string, k Key) error
	// Forget takes a worker's keys away. A queued job to which none is left is dead: WhyNoRecipient.
	Forget(ctx context.Context, worker string) error
	// Retry makes a dead job a queued one with all its attempts, at the place that it had, and has a queued one that
	// rests leased at once. A job that is leased or done is an error wrapping ErrBegun, one without a box ErrBodyGone.
	Retry(ctx context.Context, id string) (Entry, error)
	// Purge forgets a job, with all that is kept of it. One that is leased is an error wrapping ErrBegun.
	Purge(ctx context.Context, id string) (Entry, error)
	// Return ends the leases of a worker up to an epoch: its process was started anew behind that, and has not started those jobs.
	Return(ctx context.Context, worker string, upTo uint64) error
	// Stats counts.
	Stats(ctx context.Context) (Stats, error)
	// Lease waits for the first queued job that fits and gives it to the worker for ttl. What does not
	// fit keeps its place, and its attempts. fits reports whether the worker can start the job now; it is
	// asked again when anything is submitted, and must not call the queue. nil takes every job.
	Lease(ctx context.Context, worker string, fits func(Entry) bool, ttl time.Duration) (Lease, error)
	// Settle ends a job without a lease: it is found out that run is what became of it. A
	// lease of it is lost, unless it is worker's. An unknown job is taken as submitted and done.
	Settle(ctx context.Context, j Job, worker string, run protocol.RunID) error
	// Cancel takes a queued job out: it is dead, and Why is WhyCancelled. A dead job is left as it
	// is; one that is leased or done is an error wrapping ErrBegun, and an unknown one one wrapping
	// ErrUnknownJob.
	Cancel(ctx context.Context, id string) (Entry, error)
	// Find is an error wrapping ErrUnknownJob for a job that was never submitted, or that was
	// done so long ago that it is forgotten.
	Find(ctx context.Context, id string) (Entry, error)
	// List gives the jobs that are not done, in the order of the queue; a list of none is not nil.
	List(ctx context.Context) ([]Entry, error)
	// Await returns the job once it is done or dead.
	Await(ctx context.Context, id string) (Entry, error)
}

// A Lease is the right to start one job. It ends with the first of Done, Retry, Dead, or when
// ttl passes without Extend; each of the methods then returns an error wrapping ErrLeaseLost.
type Lease interface {
	// Entry is the job as it was leased, with the epoch.
	Entry() Entry
	// Until is when it lapses, or somewhat earlier, by the clock of this process.
	Until() time.Time
	// Extend gives another ttl from now on.
	Extend(ctx context.Context) error
	// Done says that the job became run.
	Done(ctx context.Context, run protocol.RunID) error
	// Retry puts the job back at its place, to be leased after delay, or makes it dead when it
	// had its Attempts. why is a Code.
	Retry(ctx context.Context, delay time.Duration, why string) error
	// Dead ends the job for good.
	Dead(ctx context.Context, why string) error
	// Lost is closed when the lease has ended, for whatever reason.
	Lost() <-chan struct{}
}

// Code makes a reason fit for a queue's disk, which holds no content: lower-case letters,
// digits, _ and -, at most 64; anything else becomes "error".
func Code(why string) string {
	if why == "" || len(why) > 64 || strings.Trim(why, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return "error"
	}
	return why
}
