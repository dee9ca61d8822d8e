package chat

import (
	"context"

	"wf/api"
	"wf/protocol"
)

// A Session is a run that a person takes part in, here or elsewhere.
type Session interface {
	// Info says what the status line needs to know.
	Info() Info
	// Follow hands the events after from, and then what happens, to on, until ctx ends; it
	// connects again by itself. on must not block for long.
	Follow(ctx context.Context, from protocol.Seq, on func(api.Update)) error
	// Page reads up to n events that end before seq, in order.
	Page(ctx context.Context, before protocol.Seq, n int) ([]api.Update, error)
	// Tip is the newest seq of the run.
	Tip(ctx context.Context) (protocol.Seq, error)
	// Say queues words for the next agent. A run that no process drives goes on with them.
	Say(ctx context.Context, text string) error
	// Answer answers the question of a step.
	Answer(ctx context.Context, x api.Answer) error
	// Tasks are all tasks of the run, oldest first; none is no error.
	Tasks(ctx context.Context) ([]TaskPage, error)
	// Paths lists files of the workspace, as Files does; where they are not here the error wraps ErrElsewhere.
	Paths(ctx context.Context) (paths []string, more bool, err error)
	// Attached is the text of the files that a line names by @path, to follow it, of about room bytes.
	Attached(ctx context.Context, line string, room int) (string, error)
	// Spent is what the run cost so far: "" for nothing yet, and Unpriced where the price of a call is not known.
	Spent(ctx context.Context) (string, error)
	// Stops reports whether Interrupt reaches the process that drives the run. It takes no time.
	Stops() bool
	// Command carries out one of the actions below; what it returns is shown. Reset, Fork, Model, Sessions and the ways back may
	// go over to another run: then Info and Follow are asked again. So it is with a *MovedError of any of these.
	Command(ctx context.Context, c Command) (Outcome, error)
}

// Unpriced is the cost of a run of which the price of a call is not known.
const Unpriced = "unpriced"

// Info is what is known of a session from the start.
type Info struct {
	Run    protocol.RunID
	Title  string
	Model  string
	Window int64  // tokens at which the conversation is compacted, 0 is not known
	Dir    string // in which its tools work, "" is not known
	Me     string // by which name the person at this screen is recorded
	Word   string // what there is to say at the beginning, "" for nothing
}

// Action names what a Command does.
type Action string

// The actions.
const (
	Compact   Action = "compact"
	Reset     Action = "reset"
	Fork      Action = "fork"
	Interrupt Action = "interrupt"
	Resume    Action = "resume"
	Dump      Action = "dump"
	Memories  Action = "memory"
	Cost      Action = "cost"
	Model     Action = "model"
	Undo      Action = "undo"
	Redo      Action = "redo"
	Rewind    Action = "rewind"
	Sessions  Action = "sessions"
)

// Command is an Action with its argument, a path for example.
type Command struct {
	Action Action
	Arg    string
	Each   func(done, of int) // of Undo, Redo and Rewind: called as files change; nil for nothing
}

// Outcome is what a command has to show.
type Outcome struct {
	Text   string // lines without Markdown
	Dialog bool   // shown in a window of its own, with Title
	Title  string
	Wide   bool // the lines are columns: they are not wrapped, and can be moved sideways
	Moved  bool // the session is another run from here on

	Line string // what was taken back, to be written again
	List *List  // to choose from
}

// A MovedError is why something was not done: the conversation went to another run meanwhile, in which the session is now.
type MovedError struct{ Text string }

func (e *MovedError) Error() string { return e.Text }
