// Package roles holds what performs a step: the Performer contract, and the performers that
// need no model: run (a command), ask (a person), wait (a timer or signal), set (values).
//
// # Life of a visit
//
//	Prepare? ─► step_started durable ─► Perform ─► emit … emit ─► Conclusion │ error
//
// A Performer acts on its Turn alone. What it did is on disk before it goes on: emit returns
// when the events are durable (but see Soon). After a crash it is called again with the same Turn and the
// events it emitted before in Turn.Transcript.
//
// # Not here
//
// Deciding what runs next, and writing records: the engine does both.
package roles

import (
	"context"

	"wf/protocol"
)

// A Performer carries out one visit. It must emit what it did as events before it acts on
// the outcome, and return a Conclusion last, or an error; an error wrapping
// protocol.ErrWaiting parks the run until someone answers.
//
// An error wrapping *protocol.Failure is an outcome: the attempt failed, the Conclusion
// beside it holds what output there is. When ctx is done Perform must stop what it started
// and return ctx's error; the visit is then tried again later and nothing is concluded. Any
// other error means that wf itself could not work, and suspends the run.
type Performer interface {
	Perform(ctx context.Context, turn protocol.Turn, emit Emit) (protocol.Conclusion, error)
}

// Emit appends events of the visit to the journal, all in one commit, and returns when they
// are durable, and with them all that the visit emitted before. Without data it only waits for
// that. A protocol.Delta goes to live watchers only and is never stored.
type Emit func(ctx context.Context, data ...protocol.Data) error

// Soon makes an Emit that is called with it return when the events have their place in the
// journal, behind all that was emitted before, and are not yet durable. A crash may still lose
// them, the newest first; an error of writing them is that of a later Emit. So it is for what
// can be done once more without harm: before an effect, and before it waits for someone, a
// performer emits with its own ctx. It need not do so before it concludes: what a visit
// concluded is never durable before what it emitted.
//
// A limit that the events reach holds all the same: ctx is done when Emit returns. An Emit that
// knows nothing of Soon makes them durable first, which is right too.
func Soon(ctx context.Context) context.Context { return context.WithValue(ctx, soonKey{}, true) }

// IsSoon tells an implementation of Emit whether ctx is one of Soon.
func IsSoon(ctx context.Context) bool { return ctx.Value(soonKey{}) != nil }

type soonKey struct{}

// A Writer is a Performer that knows which roles, and which of the tools that they call, may change the files of the
// workspace; with "" the role. All do of one that is none.
type Writer interface {
	MayWrite(role *protocol.Role, tool string) bool
}

// A Preparer is a Performer that fixes, before the visit starts, what its record holds of
// tools and injected text. It is called once per visit; later attempts see the recorded
// values in Turn.History.
type Preparer interface {
	Prepare(ctx context.Context, turn protocol.Turn) (Preparation, error)
}

// Emitting has a Preparer that is called with it emit events of the visit that it prepares: that it is held. The visit begins
// with the first of them, and may be shown to people from then on.
func Emitting(ctx context.Context, emit Emit) context.Context {
	return context.WithValue(ctx, emitKey{}, emit)
}

// EmitOf is the Emit of Emitting, nil for none.
func EmitOf(ctx context.Context) Emit {
	emit, _ := ctx.Value(emitKey{}).(Emit)
	return emit
}

type emitKey struct{}

// Preparation becomes the tools and inject fields of the StepRecord; "" is null.
type Preparation struct {
	Tools  string // canonical JSON tool list
	Inject string
}
