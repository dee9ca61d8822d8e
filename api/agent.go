package api

import "wf/protocol"

// Agent is what is known of the first agent of a run where the run is.
type Agent struct {
	Model  string // that it uses, "" is not known
	Window int64  // tokens at which its conversation is compacted, 0 is not known
}

// Memo is one thing that an agent remembers.
type Memo struct {
	ID       protocol.Seq // the seq of the event that remembered it
	Text     string
	Tags     []string
	Pinned   bool
	Distance *float64 // from what was asked for, 0 to 2
}
