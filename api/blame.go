package api

import "wf/protocol"

// Blame tells which visits of a run wrote the lines of a file: wf.blame/v1.
type Blame struct {
	Schema string         `json:"schema"`
	Run    protocol.RunID `json:"run"`
	Path   string         `json:"path"` // from the workspace
	Lines  []BlamedLine   `json:"lines"`
}

// BlamedLine is a line, and where it came from.
type BlamedLine struct {
	Line int          `json:"line"`           // from 1
	By   []string     `json:"by"`             // the visit, "outside", or those of which it was one
	Call string       `json:"call,omitempty"` // the tool call behind which it was there first
	Tool string       `json:"tool,omitempty"` // of the call
	Seq  protocol.Seq `json:"seq,omitempty"`  // of the event that tells so
	Time Time         `json:"time,omitempty"`
	Text string       `json:"text"`
}
