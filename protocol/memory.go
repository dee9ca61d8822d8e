package protocol

// MemoryHead is the name of the head of a memory: memory/<scope>.
func MemoryHead(scope string) string { return "memory/" + scope }

// The event types of a memory's journal. It has no run_started: its first event remembers
// something. The id of a memory is the seq of the event that remembered it.
const (
	EvRemembered EventType = "remembered"
	EvEdited     EventType = "edited"
	EvPinned     EventType = "pinned"
	EvUnpinned   EventType = "unpinned"
	EvTagged     EventType = "tagged"
	EvRemoved    EventType = "removed"
	EvIndexed    EventType = "indexed"
)

// SpecialAnchor is the special memory that comes before all others.
const SpecialAnchor = "anchor"

// MemoryMax is the longest content of a memory, in bytes.
const MemoryMax = ChunkSize

// MemoryOrigin is the origin of a change of a memory. Key is the same when a change is made again after a
// crash, and distinct between changes: a second event of one key changes nothing. "" is none.
type MemoryOrigin struct {
	By  string `cbor:"by,omitempty" json:"by,omitempty"`
	Run RunID  `cbor:"run,omitempty" json:"run,omitempty"`
	Key string `cbor:"key,omitempty" json:"key,omitempty"`
}

// MemoryPlace is where in a tree of files a memory comes from: lines Line to End of File, which
// is relative, with slashes, to the root that was indexed.
type MemoryPlace struct {
	File string `cbor:"file" json:"file"`
	Line int    `cbor:"line" json:"line"`
	End  int    `cbor:"end" json:"end"`
}

// Remembered adds a memory.
type Remembered struct {
	Content Text     `cbor:"content" json:"content"` // at most MemoryMax bytes
	Tags    []string `cbor:"tags" json:"tags"`
	Pinned  bool     `cbor:"pinned" json:"pinned"`
	// Special is SpecialAnchor or "": the memory takes the place of an earlier one of that name.
	Special string       `cbor:"special,omitempty" json:"special,omitempty"`
	Place   *MemoryPlace `cbor:"place,omitempty" json:"place,omitempty"`
	// Model indexes the memory as long as no Indexed names another.
	Model string `cbor:"model,omitempty" json:"model,omitempty"`
	MemoryOrigin
}

// Edited changes what a memory says, or where it comes from; what is not set stays.
type Edited struct {
	ID      Seq          `cbor:"id" json:"id"`
	Content Text         `cbor:"content,omitempty,omitzero" json:"content,omitzero"`
	Place   *MemoryPlace `cbor:"place,omitempty" json:"place,omitempty"`
	MemoryOrigin
}

// Pinned puts a memory into every new context.
type Pinned struct {
	ID Seq `cbor:"id" json:"id"`
	MemoryOrigin
}

// Unpinned takes that back.
type Unpinned struct {
	ID Seq `cbor:"id" json:"id"`
	MemoryOrigin
}

// Tagged replaces the tags of a memory.
type Tagged struct {
	ID   Seq      `cbor:"id" json:"id"`
	Tags []string `cbor:"tags" json:"tags"`
	MemoryOrigin
}

// Removed is a tombstone: the memory is no longer found, its history stays.
type Removed struct {
	ID Seq `cbor:"id" json:"id"`
	MemoryOrigin
}

// Indexed names the model that makes the vectors by which memories are found from here on.
type Indexed struct {
	Model string `cbor:"model" json:"model"`
	MemoryOrigin
}

// MemoryChanged says in the journal of a run that a visit changed a memory. Head is the text
// of the CID of the memory's newest event. It is no Link: an export of the run would hold the
// whole memory.
type MemoryChanged struct {
	Scope string `cbor:"scope" json:"scope"`
	Head  string `cbor:"head" json:"head"`
}

// EventType names the type of each data.
func (Remembered) EventType() EventType    { return EvRemembered }
func (Edited) EventType() EventType        { return EvEdited }
func (Pinned) EventType() EventType        { return EvPinned }
func (Unpinned) EventType() EventType      { return EvUnpinned }
func (Tagged) EventType() EventType        { return EvTagged }
func (Removed) EventType() EventType       { return EvRemoved }
func (Indexed) EventType() EventType       { return EvIndexed }
func (MemoryChanged) EventType() EventType { return EvMemoryChanged }

// MemorySpec gives an agent a memory. The zero value is the memory of the role, recalled from
// at the start of each visit.
type MemorySpec struct {
	Scope    string `cbor:"scope,omitempty" json:"scope,omitempty"`         // workflow, user, or the name of a memory that is shared; "" is the role's own
	NoRecall bool   `cbor:"no_recall,omitempty" json:"no_recall,omitempty"` // nothing is recalled unasked
	TopK     int    `cbor:"top_k,omitempty" json:"top_k,omitempty"`         // memories recalled unasked at most; 0 is 3
	Distance string `cbor:"distance,omitempty" json:"distance,omitempty"`   // decimal: how far they may be, 0 to 2; "" is the model's default
	Embed    string `cbor:"embed,omitempty" json:"embed,omitempty"`         // embedding model; "" is the one the memory has, else the lexical one
}

// The scopes of a memory that are words of the language; any other word names a shared memory.
const (
	MemoryRole     = "role"
	MemoryWorkflow = "workflow"
	MemoryUser     = "user"
)
