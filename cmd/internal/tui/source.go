package tui

import (
	"context"

	"wf/protocol"
)

// Source gives what is shown; package source implements it.
type Source interface {
	// Runs lists the newest runs.
	Runs(ctx context.Context) ([]Run, error)
	// Run is one run with its steps, in the order they began.
	Run(ctx context.Context, id protocol.RunID) (View, error)
	// Page is the text of a page about a step; step is "" for the pages of the run.
	Page(ctx context.Context, id protocol.RunID, step string, p Page) (string, error)
	// Follow calls moved whenever something happened to a run, until ctx ends.
	Follow(ctx context.Context, id protocol.RunID, moved func()) error
	// Answer answers a question of a run: with a choice of it, or a text.
	Answer(ctx context.Context, id protocol.RunID, q Question, text string) error
}

// Run is a run in the list.
type Run struct {
	ID       protocol.RunID
	Workflow string
	Title    string
	Status   string // protocol.RunStatus, or why no process drives it: interrupted, not started, answered
	Steps    int
	Updated  string // RFC 3339
}

// View is a run with its steps.
type View struct {
	Run
	Reason  string
	Steps   []Step
	Waiting []Question
}

// Step is a visit.
type Step struct {
	ID      string
	Status  string // ok, failed, running, waiting, …
	CID     string // of its record, "" while it runs
	Resumes bool   // it continues a conversation
	Prompt  string // of the edge
}

// Question is what a run waits for.
type Question struct {
	Step, Text string
	Choices    []protocol.Choice
	Shown      string // digest of the tool call that is asked for
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
