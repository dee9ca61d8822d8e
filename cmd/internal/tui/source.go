package tui

import (
	"context"

	"wf/api"
	"wf/protocol"
)

// Source gives what is shown; a Reader is one.
type Source interface {
	// Runs lists the newest runs.
	Runs(ctx context.Context) ([]api.Row, error)
	// Run is one run with its steps, in the order they began.
	Run(ctx context.Context, id protocol.RunID) (*api.Run, error)
	// Page is the text of a page about a step; step is "" for the pages of the run.
	Page(ctx context.Context, id protocol.RunID, step string, p Page) (string, error)
	// Follow calls moved whenever something happened to a run, until ctx ends.
	Follow(ctx context.Context, id protocol.RunID, moved func()) error
	// Answer answers a question of a run: with a choice of it, or a text.
	Answer(ctx context.Context, id protocol.RunID, q api.Waiting, text string) error
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
