package api

import "wf/protocol"

// ImportOptions say how an archive comes in; the zero value is right.
type ImportOptions struct {
	Run protocol.RunID // another id for the imported run; "" is its own
	// Worker is the id of the worker that takes the archive, at a hub. "" is the only one that is connected.
	Worker string
}

// Imported is what an archive brought: wf.import/v1.
type Imported struct {
	Schema string           `json:"schema"`
	Runs   []protocol.RunID `json:"runs"`  // those that were exported
	Roots  []string         `json:"roots"` // CIDs
	Blocks int64            `json:"blocks"`
	Bytes  int64            `json:"bytes"`

	Children  []protocol.RunID `json:"children,omitempty"`  // the runs of sub-workflows
	Forwarded []protocol.RunID `json:"forwarded,omitempty"` // those of both that were there, and went on
	Held      []protocol.RunID `json:"held,omitempty"`      // those of both that were there with all that came in
}

// exportAgain is the advice for a fault of an archive.
const exportAgain = "export the run again"

// ArchiveFault marks err as a fault of the archive that was imported, not of the store that took it. Its code stays.
func ArchiveFault(err error) error {
	return &protocol.Error{Code: protocol.CodeOf(err), Message: err.Error(), Hint: exportAgain}
}

// IsArchiveFault reports whether err was marked by ArchiveFault, in this process or by a server.
func IsArchiveFault(err error) bool { return protocol.HintOf(err) == exportAgain }
