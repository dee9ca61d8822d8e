package protocol

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// Workspace says which files of the workspace a run records; see FilesTracked and FilesAt.
type Workspace struct {
	Track   *bool    `cbor:"track,omitempty" json:"track,omitempty"`       // nil: where an agent may write, up to TrackFiles and TrackTotal
	Include []string `cbor:"include,omitempty" json:"include,omitempty"`   // globs of files that are recorded although rules leave them out
	Exclude []string `cbor:"exclude,omitempty" json:"exclude,omitempty"`   // globs of files that are not recorded
	MaxSize int64    `cbor:"max_size,omitempty" json:"max_size,omitempty"` // bytes of a file, a longer one is omitted; 0 is TrackSize
}

// How much a workspace may have so that it is recorded without being asked for, how much in any case, and how long a file
// is that is recorded.
const (
	TrackFiles    = 50_000
	TrackTotal    = 500 << 20
	TrackFilesMax = 1_000_000
	TrackTotalMax = 1 << 40
	TrackSize     = 100 << 20
	TrackSizeMax  = 10 << 30
)

// FilesTracked says, at the start of a run, whether the files of its workspace are recorded. A tree is named by the text of
// its CID, and no Link: the run is whole without it, so it can be archived without the files, and they can be dropped. The
// head FilesHead keeps it.
type FilesTracked struct {
	On   bool   `cbor:"on" json:"on"`
	Why  string `cbor:"why,omitempty" json:"why,omitempty"`   // not
	Tree string `cbor:"tree,omitempty" json:"tree,omitempty"` // the first: the rules of what is left out are those in it
}

// FilesAt is what the workspace held.
type FilesAt struct {
	Attempt int    `cbor:"attempt" json:"attempt"`
	Phase   string `cbor:"phase" json:"phase"` // FilesBefore, FilesCall or FilesAfter
	Tree    string `cbor:"tree,omitempty" json:"tree,omitempty"`
	Call    string `cbor:"call,omitempty" json:"call,omitempty"` // of FilesCall: the tool call that has ended
	Why     string `cbor:"why,omitempty" json:"why,omitempty"`   // there is no Tree
	// Overlaps are the visits that acted in the workspace at the same time, as far as this process knows; those of other
	// runs with their run. Any of them may have changed what differs. Of more than 100 they are the first that it met.
	Overlaps []string `cbor:"overlaps,omitempty" json:"overlaps,omitempty"`
	// OverlapsCount is how many there were, where Overlaps does not name all.
	OverlapsCount int `cbor:"overlaps_count,omitempty" json:"overlaps_count,omitempty"`
}

// FilesLaid has a run work in a copy of its files from here on, on another machine than before, which has them still.
type FilesLaid struct {
	Workspace string `cbor:"workspace" json:"workspace"`           // absolute
	Machine   string `cbor:"machine" json:"machine"`               // that it is on, as in RunStarted
	Tree      string `cbor:"tree,omitempty" json:"tree,omitempty"` // what was laid out; "" of a sub-workflow, whose parent has the copy
	By        string `cbor:"by" json:"by"`
	// LeftOut are the files of which the tree has no content, each with the reason, of more than FilesLeftOut the first.
	LeftOut []string `cbor:"left_out,omitempty" json:"left_out,omitempty"`
	// LeftOutCount is how many there are, where LeftOut does not name all.
	LeftOutCount int `cbor:"left_out_count,omitempty" json:"left_out_count,omitempty"`
}

// FilesLeftOut is how many files FilesLaid names.
const FilesLeftOut = 100

// When a tree was taken.
const (
	FilesBefore = "before" // the attempt
	FilesCall   = "call"   // after a tool call that may write
	FilesAfter  = "after"  // the attempt, well or not
)

// FilesKept keeps trees of a run: the block that the head FilesHead names.
type FilesKept struct {
	Kind string `cbor:"kind"` // KindFilesKept
	V    int    `cbor:"v"`
	Prev Link   `cbor:"prev"` // the FilesKept before, or null
	Tree Link   `cbor:"tree"`
	// Also is a FilesKept that came with an archive, beside those before.
	Also Link `cbor:"also,omitempty,omitzero"`
}

// KindFilesKept is the kind of FilesKept.
const KindFilesKept = "files"

// FilesHead is the name of the head that keeps the trees of a run: files/<run>.
func FilesHead(run RunID) string { return "files/" + string(run) }

// FilesRestore is a restoring of the files of a workspace: the block that the head RestoreHead names. Its journal is its own,
// since the last event of a run that has ended stays the last. It begins with the intent, durable before a file changes, and
// ends with another block that has the outcome. Trees are named by text, as in FilesTracked: FilesHead of the run keeps them.
type FilesRestore struct {
	Kind string `cbor:"kind"` // KindFilesRestore
	V    int    `cbor:"v"`
	Prev Link   `cbor:"prev"` // the FilesRestore before in this workspace, or null

	Run       RunID    `cbor:"run"`
	Workspace string   `cbor:"workspace"`
	State     string   `cbor:"state"` // RestoreBegun, RestoreDone or RestoreAborted
	From      string   `cbor:"from"`  // the newest tree that was recorded
	To        string   `cbor:"to"`    // what is to be there
	Undo      string   `cbor:"undo"`  // From, with what Force replaces
	Paths     []string `cbor:"paths,omitempty"`
	Force     bool     `cbor:"force,omitempty"`
	By        string   `cbor:"by,omitempty"`
	At        int64    `cbor:"at"` // unix µs

	Tree      string   `cbor:"tree,omitempty"` // of the outcome: what is recorded now
	Changed   int      `cbor:"changed,omitempty"`
	Conflicts []string `cbor:"conflicts,omitempty"` // paths that were left alone, RestoreConflicts of them at most

	Chat *ChatMoved `cbor:"chat,omitempty"` // the conversation goes with the files; nil: it stays
}

// ChatMoved is where a conversation goes together with the files: from the run of a FilesRestore to another one. The trees of
// that record are empty where the run does not record its files.
type ChatMoved struct {
	What string `cbor:"what"` // ChatUndo, ChatRedo or ChatRewind
	Seq  Seq    `cbor:"seq"`  // the newest event of the run that it leaves
	Next RunID  `cbor:"next"` // the run in which it goes on
	// At is the newest event of the run that Next, a fork of it, shares. Next is made in the transaction that ends the
	// restoring, and so once. 0: Next was there before, and is gone back to.
	At       Seq    `cbor:"at,omitempty"`
	Messages int    `cbor:"messages,omitempty"` // as in Forked
	Step     string `cbor:"step,omitempty"`     // the visit whose answer was taken back
}

// What moved a conversation.
const (
	ChatUndo   = "undo"
	ChatRedo   = "redo"
	ChatRewind = "rewind"
)

// KindFilesRestore is the kind of FilesRestore.
const KindFilesRestore = "restore"

// How a restoring of files stands.
const (
	RestoreBegun   = "begun"
	RestoreDone    = "restored"
	RestoreAborted = "aborted"
)

// RestoreConflicts is how many paths FilesRestore names.
const RestoreConflicts = 1000

// RestoreHeads is how the names of the heads of restorings begin.
const RestoreHeads = "restore/"

// RestoreHead is the name of the head of the restorings of files in a workspace, which is on a machine; "" is the one that the
// store is on.
func RestoreHead(machine, workspace string) string {
	if machine != "" {
		workspace = machine + ":" + workspace
	}
	return RestoreHeads + hashed(workspace)
}

// hashed is a text that the name of a head can hold.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}
