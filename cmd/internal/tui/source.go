package tui

import (
	"context"

	"wf/api"
	"wf/protocol"
)

// Source gives what is shown, and does what is asked for; a Reader is one.
type Source interface {
	// Runs lists runs, the one that moved last first: those behind a place of the list, "" for the newest, in whose
	// words a text is found, "" for all.
	Runs(ctx context.Context, text, before string) (*api.Page, error)
	// Run is one run with some of its steps, in the order they began: at most so many, and with before only those that
	// began before that event.
	Run(ctx context.Context, id protocol.RunID, w api.Window) (*api.Run, error)
	// Items is how many items the fan-out has of which one began with an event.
	Items(ctx context.Context, id protocol.RunID, began protocol.Seq) (int, error)
	// Page is a page about a step; a zero step is for the pages of the run.
	Page(ctx context.Context, id protocol.RunID, step Step, p Page) (Text, error)
	// Follow calls moved whenever something happened to a run after an event, until ctx ends.
	Follow(ctx context.Context, id protocol.RunID, from protocol.Seq, moved func()) error

	// Answer answers a question of a run.
	Answer(ctx context.Context, id protocol.RunID, a api.Answer) error
	// Resume goes on with a run, Cancel ends it.
	Resume(ctx context.Context, id protocol.RunID) error
	Cancel(ctx context.Context, id protocol.RunID) error
	// Fork makes a new run that shares what came before a step, and with hold does not go on with it.
	Fork(ctx context.Context, id protocol.RunID, step string, hold bool) (api.Accepted, error)
	// Delete deletes a run that has ended, with the runs of its sub-workflows; a dry run tells which.
	Delete(ctx context.Context, id protocol.RunID, dry bool) (*api.Deleted, error)
}

// Step names a visit for a page.
type Step struct {
	ID           string
	Shown        *api.Step    // as it was read last, if it was
	Began, Ended protocol.Seq // its first and last event; 0 is unknown, or none yet
	Newest       protocol.Seq // event of the run, as it was read last
	// Before asks for the part of a long page before an event; 0 is its end.
	Before protocol.Seq
}

// Text is a page, or the part of a long one.
type Text struct {
	Text    string
	Earlier protocol.Seq // Step.Before of the part before this one; 0 where there is none
}

// Page is what is shown of a step.
type Page int

// The pages, in the order of their tabs.
const (
	Output Page = iota
	Messages
	Events
	Diff
	Cost
	Verify
	pages
)

// String is the name on the tab.
func (p Page) String() string {
	return [...]string{"Output", "Messages", "Events", "Diff", "Cost", "Verify"}[p]
}

// columns reports whether the lines of a page are columns, which are not wrapped.
func (p Page) columns() bool { return p == Events || p == Diff || p == Cost }
