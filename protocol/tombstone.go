package protocol

import "strings"

// KindTombstone is the kind of a Tombstone.
const KindTombstone = "tombstone"

// Tombstone is what is left of a run that was deleted: the head deleted/<run> names it. The id of the run stays
// taken for ever. It holds nothing of what the run was about.
type Tombstone struct {
	Kind string `cbor:"kind" json:"kind"`
	V    int    `cbor:"v" json:"v"`
	Run  RunID  `cbor:"run" json:"run"`
	// Head is the CID of the newest event that the run had, as text: nothing is reached through it.
	Head string `cbor:"head" json:"head"`
	Seq  Seq    `cbor:"seq" json:"seq"` // of that event
	// Files is that of the FilesKept of the run, as text; "" where none were recorded.
	Files string `cbor:"files,omitempty" json:"files,omitempty"`
	By    string `cbor:"by" json:"by"`
	At    int64  `cbor:"at" json:"at"` // unix µs
	Why   string `cbor:"why" json:"why"`
}

// Error is what is said of the run from now on. It wraps ErrRunDeleted.
func (t *Tombstone) Error() error {
	by, why := "", ""
	if t.By != "" {
		by = " by " + t.By
	}
	if t.Why != "" {
		why = ": " + t.Why
	}
	return ErrRunDeleted.With("", "run %s was deleted on %s%s%s", t.Run, AppendTime(nil, t.At), by, why)
}

// DeletedHead is the name of the head that points to the tombstone of a run.
func DeletedHead(id RunID) string { return deletedPrefix + string(id) }

const deletedPrefix = "deleted/"

// RunDeleted is the run of the tombstone that a head names.
func RunDeleted(head string) (RunID, bool) {
	id, ok := strings.CutPrefix(head, deletedPrefix)
	return RunID(id), ok
}
