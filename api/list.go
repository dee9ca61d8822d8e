package api

import (
	"strings"

	"wf/protocol"
)

// Row is a run in a list of runs.
type Row struct {
	ID       protocol.RunID     `json:"id"`
	Workflow string             `json:"workflow"`
	Title    string             `json:"title"`
	Status   protocol.RunStatus `json:"status"`
	Driving
	Foreign bool               `json:"foreign,omitempty"` // it came from elsewhere, and is not driven before wf store adopt on that machine
	Closing protocol.RunStatus `json:"closing,omitempty"` // what the run ends as, while its always roles run
	Reason  string             `json:"reason,omitempty"`
	Steps   int                `json:"steps"`
	Started Time               `json:"started"`
	Updated Time               `json:"updated"` // of the newest event
	Spent
	Usage     RowUsage     `json:"usage"`
	CostUSD   *float64     `json:"cost_usd"` // null: unknown
	Head      CID          `json:"head"`     // of the newest event
	Seq       protocol.Seq `json:"seq"`      // of the newest event
	Tags      []string     `json:"tags"`
	RequestID string       `json:"request_id"`
	Parent    *string      `json:"parent"` // RUN:STEP of which it is a sub-workflow
	Waiting   []Waiting    `json:"waiting"`
	Queue     *QueuePlace  `json:"queue,omitempty"`          // of a queued run: what it waits behind
	Agent     string       `json:"agent,omitempty" at:"hub"` // that has the run
	Hits      []Hit        `json:"hits,omitempty"`           // of a search: at most 3 places where its words occur
}

// Hit is a place in a run where words of a search occur.
type Hit struct {
	Step string         `json:"step"`          // of a system prompt its role; empty for what is of the run
	Kind string         `json:"kind"`          // title, input, prompt, answer, error or question
	Text string         `json:"text"`          // an excerpt: one line of at most 200 characters
	Run  protocol.RunID `json:"run,omitempty"` // of a sub-workflow, whose step it is
}

// Searched says how far what was said in runs is searched.
type Searched struct {
	Runs   int  `json:"runs"`   // that are searched whole
	Behind int  `json:"behind"` // of which the newest texts, or all, are not searched yet
	UpTo   Time `json:"up_to"`  // runs whose newest event is not after this are searched whole; empty where there are none
}

// RowUsage are the tokens of a run, as the state of the run counts them.
type RowUsage struct {
	Calls  int   `json:"calls"`
	Input  int64 `json:"input"`
	Cached int64 `json:"cached"`
	Output int64 `json:"output"`
}

// Page is a part of the list of runs: wf.runs/v1.
type Page struct {
	Schema string  `json:"schema"`
	Items  []Row   `json:"items"`
	Next   *string `json:"next"` // before, for the next page; null at the end. What moves meanwhile is not listed twice
	// Searched is how far runs are searched; left out where no text and no person is looked for.
	Searched *Searched `json:"searched,omitempty"`
	// Counts are the runs by status that fit all else that was asked; on a first page that was asked with counts.
	Counts map[protocol.RunStatus]int `json:"counts,omitzero"`
	// Unread are why runs are not listed: they are damaged, or of a newer wf.
	Unread []*protocol.Error `json:"unread,omitempty"`
	// Missing are the workers of a hub whose runs are not listed: they did not answer in time, or
	// are away.
	Missing []string `json:"missing,omitempty" at:"hub"`
}

// RowPlace is the place of a row in the list of runs, which is ordered by the time of the newest event, the newest first,
// then by id. It stays where it is when the run moves.
func RowPlace(updated string, run protocol.RunID) string { return updated + "," + string(run) }

// ReadRowPlace reads what RowPlace has made; ok is false for what has another shape.
func ReadRowPlace(place string) (updated string, run protocol.RunID, ok bool) {
	updated, id, ok := strings.Cut(place, ",")
	return updated, protocol.RunID(id), ok
}
