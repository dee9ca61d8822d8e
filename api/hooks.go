package api

import "wf/protocol"

// Hooks is where notifications about runs go, and what is still to be delivered: wf.hooks/v1.
type Hooks struct {
	Schema string `json:"schema"`
	Sinks  []Hook `json:"sinks"`
}

// Hook is a sink of notifications.
type Hook struct {
	Name       string            `json:"name"`                // of a project project/NAME, of a workflow workflow/WORKFLOW/NAME
	To         string            `json:"to,omitempty"`        // where they go; left out for one of a workflow, which says it
	On         []protocol.Moment `json:"on,omitempty"`        // none is all
	Workflows  []string          `json:"workflows,omitempty"` // that it is for; none is all
	Delivered  int64             `json:"delivered"`
	Waiting    int               `json:"waiting"`
	Dead       int               `json:"dead"`
	Deliveries []Delivery        `json:"deliveries"` // those that wait, then those that are dead
}

// Delivery is a notification that was not delivered yet.
type Delivery struct {
	ID        string          `json:"id"`
	Run       protocol.RunID  `json:"run"`
	Seq       protocol.Seq    `json:"seq"` // of the event that it is about
	Step      string          `json:"step,omitempty"`
	On        protocol.Moment `json:"on"`
	Reminder  int             `json:"reminder,omitempty"`  // of waiting: n of the n-th reminder of a question
	Escalated int             `json:"escalated,omitempty"` // of waiting: n where a question was put to further people for the n-th time
	Due       Time            `json:"due"`
	Dead      bool            `json:"dead"`
	Attempts  int             `json:"attempts"` // that did not work
	Next      *Time           `json:"next"`     // when it is attempted again; null is at once, or never
	Error     string          `json:"error,omitempty"`
}
