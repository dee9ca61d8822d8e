package api

import (
	"context"
	"fmt"

	"wf/protocol"
)

// An Update is one thing that happened to a run: an event that is durable, live output that never will be, or
// news of how the run is followed.
type Update struct {
	Run   protocol.RunID
	Entry *protocol.Entry // nil for what is no event
	// Data is that of the event, decoded, long texts in place; nil for a type of event of a later version. Live
	// output is a protocol.Delta.
	Data protocol.Data
	Step string // of the event or the output, "" for what belongs to no step

	// Of an event that this process wrote, where the engine itself tells of it:
	Wrote    bool
	Workflow *protocol.Workflow // of the run; it must not be changed
	Parent   protocol.RunID     // the run that this one is a sub-workflow of; "" for none
	Started  int64              // of the run, in unix µs; 0 in what begins one

	After protocol.Seq // of live output that another process sent: the newest event when it was said
	N     int64        // of the same: counts the output of a step, so that a reader sees what is missing

	Remark string        // what a user should know of the connection or the history
	Reset  *protocol.Seq // with a Remark: the events after this one are void
	Away   string        // with a Remark: why there is no connection; it is tried again
	Idle   Idle          // why no process goes on with the run; then only Run is set besides

	// With Until Never alone, and then only Run is set besides:
	Whole  bool  // all that is recorded was shown, what comes is new; said again for each new connection
	Driven *bool // whether a process drives the run; said again when it was asked again
}

// A Follower shows what happens to runs as it happens.
type Follower interface {
	// Follow calls f with each event of a run that w asks for, in their order, and with the live output in
	// between. It returns nil when the run is where w.Until says, the error of f, of ctx, or one wrapping
	// protocol.ErrUnknownRun, ErrBadCursor, ErrFutureCursor or ErrCorrupt. A server that is away is waited for.
	Follow(ctx context.Context, run protocol.RunID, w Following, f func(Update) error) error
}

// Following is what is followed of a run.
type Following struct {
	From  protocol.Seq // the last event that the reader holds; 0 for none
	To    protocol.Seq // the last event that is wanted; 0 is no bound. With Recorded alone
	Until Until
}

// Until is where following a run ends.
type Until int

const (
	Recorded Until = iota // with the events that are there now
	Parked                // when the run waits, is suspended or has ended, and no process drives it
	Ended                 // when the run has ended for good
	Never                 // with the context
)

// HeadMoved is the remark that a run was put on another history by wf cas or a restored store.
func HeadMoved(run protocol.RunID, common protocol.Seq) string {
	return fmt.Sprintf("the head of run %s was put on another history; event %d is the last of both", run, common)
}

// EventOf is one event of a run.
func EventOf(ctx context.Context, f Follower, run protocol.RunID, seq protocol.Seq) (out Update, err error) {
	err = f.Follow(ctx, run, Following{From: seq - 1, To: seq}, func(u Update) error {
		if u.Entry != nil {
			out = u
		}
		return nil
	})
	if err == nil && out.Entry == nil {
		err = protocol.ErrCorrupt.With("", "run %s has no event %d", run, seq)
	}
	return out, err
}
