package chat

import (
	"context"

	"wf/protocol"
)

// A Session is a run that a person takes part in, here or elsewhere.
type Session interface {
	// Info says what the status line needs to know.
	Info() Info
	// Follow hands the events after from, and then what happens, to on, until ctx ends; it
	// connects again by itself. on must not block for long.
	Follow(ctx context.Context, from protocol.Seq, on func(Update)) error
	// Page reads up to n events that end before seq, in order.
	Page(ctx context.Context, before protocol.Seq, n int) ([]protocol.WireEvent, error)
	// Tip is the newest seq of the run.
	Tip(ctx context.Context) (protocol.Seq, error)
	// Say answers the question of a step; without one it queues the words for the next agent. A run
	// that no process drives goes on with them.
	Say(ctx context.Context, step, text string) error
	// Choose answers a question that offers choices, or one about a tool call.
	Choose(ctx context.Context, c Chosen) error
	// Fill answers a question that asks for fields; choice is "" where it offers none.
	Fill(ctx context.Context, step, choice string, fields map[string]any) error
	// Tasks are all tasks of the run, oldest first; none is no error.
	Tasks(ctx context.Context) ([]TaskPage, error)
	// Command carries out one of the actions below; what it returns is shown. Reset and Fork may
	// go over to another run: then Info and Follow are asked again.
	Command(ctx context.Context, c Command) (Outcome, error)
}

// Chosen is an answer to a question that offers choices.
type Chosen struct {
	Step, Value string
	Text        string // goes with it: why a tool call is denied
	Shown       string // of the question that was on the screen
}

// Info is what is known of a session from the start.
type Info struct {
	Run    protocol.RunID
	Title  string
	Model  string
	Window int64  // tokens at which the conversation is compacted, 0 is not known
	Dir    string // in which its tools work, "" is not known
	Me     string // by which name the person at this screen is recorded
}

// Update is something that came. Exactly one field is set.
type Update struct {
	Event  *protocol.WireEvent
	Delta  *protocol.Frame // of the type delta
	Reset  *protocol.Seq   // what follows this seq is void
	Status string          // of the connection; "" after it is whole again
	Live   bool            // all there was has been sent; from here on it is new
	Driven *bool           // whether a process drives the run
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
)

// Command is an Action with its argument, a path for example.
type Command struct {
	Action Action
	Arg    string
}

// Outcome is what a command has to show.
type Outcome struct {
	Text   string // lines without Markdown
	Dialog bool   // shown in a window of its own, with Title
	Title  string
	Wide   bool // the lines are columns: they are not wrapped, and can be moved sideways
	Moved  bool // the session is another run from here on
}
