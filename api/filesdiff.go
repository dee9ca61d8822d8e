package api

import "wf/protocol"

// FilesDiff is in what the files of two looks differ: wf.filesdiff/v1.
type FilesDiff struct {
	Schema  string     `json:"schema"`
	Left    FilesSide  `json:"left"`
	Right   FilesSide  `json:"right"`
	Equal   bool       `json:"equal"`
	Added   int        `json:"added"`   // lines
	Removed int        `json:"removed"` // lines
	Files   []FileDiff `json:"files"`
	Cut     bool       `json:"cut,omitempty"` // there is more text than is told: some files have none
}

// FilesSide is a look of a FilesDiff.
type FilesSide struct {
	Run   protocol.RunID `json:"run"`
	Step  string         `json:"step"`
	Phase string         `json:"phase"`
	Tree  CID            `json:"tree"`
}

// FileDiff is a file in which two looks differ.
type FileDiff struct {
	Path    string     `json:"path"`
	Change  string     `json:"change"`         // added, changed or removed
	Before  *FileState `json:"before"`         // null where it was added
	After   *FileState `json:"after"`          // null where it was removed
	By      []string   `json:"by,omitempty"`   // which visits did that, as in StepFile; of one step or run
	Added   int        `json:"added"`          // lines
	Removed int        `json:"removed"`        // lines
	Note    string     `json:"note,omitempty"` // why there is no text: binary, large, omitted, cut or mode
	Unified string     `json:"unified,omitempty"`
}

// FileState is what a tree has under a path.
type FileState struct {
	Mode string `json:"mode"` // file, exec, link or omitted
	Size int64  `json:"size"` // bytes
	CID  string `json:"cid,omitempty"`
	Why  string `json:"why,omitempty"` // it was omitted
}
