package api

import (
	"context"
	"io"

	"wf/protocol"
)

// A Service answers what can be asked of a store of runs, and moves its runs. It is safe for
// concurrent use. Errors wrap the sentinels of package protocol, whose codes are the same in
// process and over HTTP; an unknown run or step is an error wrapping protocol.ErrUnknownRun.
type Service interface {
	Workflows
	Runs
	Driver
	Archive
	Tasks
	Memory
	Notifications
	Tables
}

// Workflows shows what can be started.
type Workflows interface {
	// Workflows lists what can be started, by name.
	Workflows(ctx context.Context) ([]Workflow, error)
}

// Runs shows runs. None of it changes anything.
type Runs interface {
	// Resolve finds what a reference names (Ref). One that fits nothing is an error wrapping
	// protocol.ErrUnknownRun or ErrNotFound, one that fits several things wraps ErrAmbiguous.
	Resolve(ctx context.Context, text string) (Ref, error)
	// List lists runs, the one that moved last first.
	List(ctx context.Context, q Query) (*Page, error)
	// Run is a run with some of its steps.
	Run(ctx context.Context, run protocol.RunID, w Window) (*Run, error)
	// Step is one visit of a run.
	Step(ctx context.Context, run protocol.RunID, step string) (*RunStep, error)
	// Deletions lists the runs that were deleted, the last one first.
	Deletions(ctx context.Context, p Part) (*Deletions, error)
	// Graph is the picture of a run as SVG: its workflow with the path taken.
	Graph(ctx context.Context, run protocol.RunID) ([]byte, error)
	// Messages is what a visit was sent first.
	Messages(ctx context.Context, run protocol.RunID, step string) (*Messages, error)
	// VisitDiff compares the output of a visit with that of the role's previous one.
	VisitDiff(ctx context.Context, run protocol.RunID, step string) (*VisitDiff, error)
	// Diff compares two runs, step by step.
	Diff(ctx context.Context, left, right protocol.RunID) (*Diff, error)
	// Explain decides again why a step was entered.
	Explain(ctx context.Context, run protocol.RunID, step string) (*Explanation, error)
	// ExplainRun decides again why a run ended, or is where it is.
	ExplainRun(ctx context.Context, run protocol.RunID) (*RunExplanation, error)
	// Cache compares every prompt of a run with the one before it.
	Cache(ctx context.Context, run protocol.RunID) (*Cache, error)
	// Cost sums what model calls used, by one of CostGroups.
	Cost(ctx context.Context, run protocol.RunID, by string) (*Cost, error)
	// Trace writes the spans of a run, with those of its sub-workflows, as lines of OTLP/JSON. Where it fails once
	// something was written, some are missing.
	Trace(ctx context.Context, run protocol.RunID, o TraceOptions, w io.Writer) error
	// Looks are what the run recorded of the files of its workspace.
	Looks(ctx context.Context, run protocol.RunID) (*Looks, error)
	// Verify proves a run by hash, where it lies. Findings are no error.
	Verify(ctx context.Context, run protocol.RunID) (*protocol.Report, error)
}

// Driver moves runs. Each method returns when what it did is durable; the run goes on behind
// it. A run that does not fit is an error wrapping protocol.ErrFinal, ErrNotWaiting or
// ErrRunLive.
type Driver interface {
	// Start begins a run. With a request id that was used before it starts nothing, and fresh
	// is false.
	Start(ctx context.Context, s Start) (run protocol.RunID, fresh bool, err error)
	// Answer answers a waiting visit and names it.
	Answer(ctx context.Context, run protocol.RunID, a Answer) (step string, err error)
	// Cancel ends a run permanently.
	Cancel(ctx context.Context, run protocol.RunID, reason string) error
	// Suspend stops what a run does and leaves it so that Resume goes on with it. A run that
	// does nothing just now is left as it is.
	Suspend(ctx context.Context, run protocol.RunID) error
	// Compact has the next visit of an agent begin with a compaction of its conversation.
	Compact(ctx context.Context, run protocol.RunID) error
	// Resume goes on with a run that is suspended, with higher limits if any are given.
	Resume(ctx context.Context, run protocol.RunID, r Resume) error
	// Fork makes a new run that shares what came before a step, and goes on with it unless f.Hold is
	// set. One that came from elsewhere, or whose definition did, does not go on before it was adopted
	// or trusted there: it is made with f.Hold alone, else the error wraps protocol.ErrForeign or
	// protocol.ErrUntrusted.
	Fork(ctx context.Context, run protocol.RunID, f Fork) (Accepted, error)
	// Delete puts a tombstone in the place of a run that has ended, and of the runs of its sub-workflows. One
	// that has not ended is an error wrapping protocol.ErrNotFinal or ErrRunLive, a sub-workflow of a run that is
	// there one wrapping ErrUsage, one that was deleted before one wrapping ErrRunDeleted. Over HTTP it needs scope admin.
	Delete(ctx context.Context, run protocol.RunID, d Delete) (*Deleted, error)
	// Send queues a text of another source for a run.
	Send(ctx context.Context, run protocol.RunID, m Message) error
}

// Archive takes runs elsewhere.
type Archive interface {
	// Export writes a run, with the runs of its sub-workflows, as one CARv1 archive. Where it fails
	// once something was written, that is no archive of the run.
	Export(ctx context.Context, run protocol.RunID, o ExportOptions, w io.Writer) error
	// Import reads an archive into the store. Nothing of it is there before all of it was checked; what is
	// cut off or damaged leaves nothing behind, and an archive that is there already changes nothing. Imported
	// runs came from elsewhere: they do not go on before they were adopted. Over HTTP it needs scope admin.
	Import(ctx context.Context, archive io.Reader, o ImportOptions) (*Imported, error)
	// Contents tells what an archive holds: begin is called with the record of its runs, then each with the CIDs of its blocks in order, some
	// at a time.
	Contents(ctx context.Context, run protocol.RunID, o ExportOptions, begin func(protocol.Archive) error, each func([]protocol.Link) error) error
	// Parts writes some blocks of a run as a CARv1 archive of their own, which says nothing of what they belong to; BlocksMost at most. Where it fails
	// once something was written, some are missing.
	Parts(ctx context.Context, run protocol.RunID, blocks []protocol.Link, w io.Writer) error
	// Lacking are those of some blocks, BlocksMost at most, that the store does not have. Over HTTP it needs scope admin, as Import does.
	Lacking(ctx context.Context, blocks []protocol.Link) ([]protocol.Link, error)
}
