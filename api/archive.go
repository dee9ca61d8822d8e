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

// ExportOptions say what an archive holds beside what a run concluded and what happened in it.
type ExportOptions struct {
	Files bool // the files of the workspace that were recorded
}

// BlocksMost is how many blocks a request names at most: see Archive.
const BlocksMost = 10_000

// BlockNames are the CIDs of blocks.
type BlockNames struct {
	Blocks []CID `json:"blocks"` // 1 to 10,000
}

// LackedBlocks are those of BlockNames that a store does not have: wf.lacking/v1.
type LackedBlocks struct {
	Schema string `json:"schema"`
	Blocks []CID  `json:"blocks"`
}

// ArchiveContents is the first line of what an archive holds, before lines with the CIDs of its blocks: wf.contents/v1.
type ArchiveContents struct {
	Schema string        `json:"schema"`
	Runs   []ArchivedRun `json:"runs"` // first the one that was asked for, then those of its sub-workflows
}

// ArchivedRun is protocol.ArchivedRun.
type ArchivedRun struct {
	Run   protocol.RunID `json:"run"`
	Head  CID            `json:"head"`
	Seq   protocol.Seq   `json:"seq"`             // of the head
	Files CID            `json:"files,omitempty"` // of the FilesKept of the run; left out where its files are, or none were recorded
}

// ContentsOf is the record of an archive, as it is sent.
func ContentsOf(a protocol.Archive) ArchiveContents {
	out := ArchiveContents{Schema: "wf.contents/v1"}
	for _, r := range a.Runs {
		x := ArchivedRun{Run: r.Run, Head: r.Head.String(), Seq: r.Seq}
		if r.Files.Defined() {
			x.Files = r.Files.String()
		}
		out.Runs = append(out.Runs, x)
	}
	return out
}

// Record is the record that was sent. What it names is checked by the import of the archive.
func (c ArchiveContents) Record() (protocol.Archive, error) {
	out := protocol.Archive{Kind: protocol.KindArchive, V: protocol.RecordVersion}
	if len(c.Runs) == 0 {
		return out, protocol.ErrBadRequest.With("", "contents: there is no run in it")
	}
	for _, r := range c.Runs {
		x := protocol.ArchivedRun{Run: r.Run, Seq: r.Seq}
		var err error
		if x.Head, err = protocol.ParseLink(r.Head); err == nil && r.Files != "" {
			x.Files, err = protocol.ParseLink(r.Files)
		}
		if err != nil {
			return out, err
		}
		out.Runs = append(out.Runs, x)
	}
	return out, nil
}

// NamesOf are the CIDs of links.
func NamesOf(links []protocol.Link) []CID {
	out := make([]CID, len(links))
	for i, l := range links {
		out[i] = l.String()
	}
	return out
}

// LinksOf are the links that CIDs stand for.
func LinksOf(names []CID) ([]protocol.Link, error) {
	out := make([]protocol.Link, len(names))
	for i, name := range names {
		var err error
		if out[i], err = protocol.ParseLink(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
