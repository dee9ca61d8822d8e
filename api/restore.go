package api

import "wf/protocol"

// FilesRestored is what became of the files of a workspace: wf.restored/v1.
type FilesRestored struct {
	Schema    string         `json:"schema"`
	Run       protocol.RunID `json:"run"`
	Workspace string         `json:"workspace"`
	State     string         `json:"state"` // planned, restored or aborted
	From      CID            `json:"from"`  // the newest tree that was recorded
	To        CID            `json:"to"`    // what was to be there
	Undo      CID            `json:"undo"`  // wf restore RUN --tree UNDO brings back what was there
	Changed   []string       `json:"changed"`
	Kept      []string       `json:"kept"`           // of changed: nothing had recorded what lay there, and undo has it
	Conflicts []LeftAlone    `json:"conflicts"`      // left alone
	Next      protocol.RunID `json:"next,omitempty"` // the conversation went with the files: the run in which it goes on
}

// LeftAlone is a path that was left alone.
type LeftAlone struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// RestorePlanned is the state of a FilesRestored that changed nothing, beside those of protocol.FilesRestore.
const RestorePlanned = "planned"
