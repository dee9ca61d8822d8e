package server

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/api"
	"wf/hub/reply"
	"wf/protocol"
)

// Backend answers the API. Errors wrap the sentinels of package protocol, which choose the
// status. Values typed any are written as JSON objects that have a "schema".
type Backend interface {
	Reader
	Driver
}

// Reader shows workflows and runs. An unknown run or step is an error wrapping
// protocol.ErrUnknownRun.
type Reader interface {
	// Workflows lists what can be started, by name.
	Workflows(ctx context.Context) ([]api.Workflow, error)
	// Runs lists runs, the one that moved last first: wf.runs/v1. next is what Query.Before
	// goes on with, "" at the end.
	Runs(ctx context.Context, q api.Query) (items []any, next protocol.RunID, err error)
	// Run is a run with some of its steps: wf.run/v1.
	Run(ctx context.Context, run protocol.RunID, w api.Window) (any, error)
	// Graph is the picture of a run as SVG: its workflow with the path taken.
	Graph(ctx context.Context, run protocol.RunID) ([]byte, error)
	// Messages is what a visit was sent first: wf.messages/v1.
	Messages(ctx context.Context, run protocol.RunID, step string) (any, error)
	// Diff compares the output of a visit with that of the role's previous one: wf.diff/v1.
	Diff(ctx context.Context, run protocol.RunID, step string) (any, error)
	// Verify proves a run by hash: wf.verify/v1. Findings are no error.
	Verify(ctx context.Context, run protocol.RunID) (any, error)
	// Cost sums what model calls used by role, step, task, model or kind: wf.cost/v1.
	Cost(ctx context.Context, run protocol.RunID, by string) (any, error)
}

// Driver moves runs. Each method returns when what it did is durable; the run goes on behind
// it. A run that does not fit is an error wrapping protocol.ErrFinal, ErrNotWaiting or
// ErrRunLive.
type Driver interface {
	// Start begins a run. With a request id that was used before it starts nothing, and fresh
	// is false.
	Start(ctx context.Context, s api.Start) (run protocol.RunID, fresh bool, err error)
	// Answer answers a waiting visit and names it.
	Answer(ctx context.Context, run protocol.RunID, a api.Answer) (step string, err error)
	// Cancel ends a run for good.
	Cancel(ctx context.Context, run protocol.RunID, reason string) error
	// Suspend stops what a run does and leaves it so that Resume goes on with it. A run that
	// does nothing just now is left as it is.
	Suspend(ctx context.Context, run protocol.RunID) error
	// Compact has the next visit of an agent begin with a compaction of its conversation.
	Compact(ctx context.Context, run protocol.RunID) error
	// Resume goes on with a run that is suspended, with higher limits if any are given.
	Resume(ctx context.Context, run protocol.RunID, r api.Resume) error
	// Fork makes a new run that shares what came before a step, and goes on with it.
	Fork(ctx context.Context, run protocol.RunID, f api.Fork) (protocol.RunID, error)
	// Message queues a text of another source for a run.
	Message(ctx context.Context, run protocol.RunID, m api.Message) error
}

// Bounds of what is kept with a run.
const (
	maxName        = 200 // bytes of a type, scope, user, tag or request id
	maxTitle       = 1000
	maxDescription = 100_000
	maxTags        = 64
)

func checkStart(s *api.Start) error {
	if s.Workflow == "" {
		return reply.Badf("workflow is missing: the name of one that GET /v1/workflows lists")
	}
	if err := short("title", s.Title, maxTitle); err != nil {
		return err
	}
	if err := short("description", s.Description, maxDescription); err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{
		{"type", s.Type}, {"scope", s.Scope}, {"created_by", s.CreatedBy}, {"target_user", s.TargetUser}, {"request_id", s.RequestID},
	} {
		if err := short(f.name, f.text, maxName); err != nil {
			return err
		}
	}
	if strings.ContainsFunc(s.RequestID, unicode.IsControl) {
		return reply.Badf("request_id has characters that cannot be printed")
	}
	if len(s.Tags) > maxTags {
		return reply.Badf("tags: %d of them, at most %d", len(s.Tags), maxTags)
	}
	for i, t := range s.Tags {
		if t == "" {
			return reply.Badf("tags[%d] is empty", i)
		}
		if err := short(fmt.Sprintf("tags[%d]", i), t, maxName); err != nil {
			return err
		}
	}
	for role, list := range s.Models {
		if len(list) == 0 {
			return reply.Badf("models[%q] is empty", role)
		}
	}
	if _, err := protocol.ParseContext(s.Context); err != nil {
		return reply.Badf("context: %v", err)
	}
	return nil
}

// short bounds a text; it must be one, in UTF-8.
func short(name, text string, most int) error {
	switch {
	case len(text) > most:
		return reply.Badf("%s has %d bytes, at most %d", name, len(text), most)
	case !utf8.ValidString(text):
		return reply.Badf("%s is not UTF-8", name)
	}
	return nil
}
