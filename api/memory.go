package api

import (
	"context"

	"wf/protocol"
)

// Memory shows and changes what agents remember beyond a run. A scope names one memory:
// role/WORKFLOW/ROLE, workflow/WORKFLOW, user/NAME, or the name of one that is shared; "" and user are
// that of the user whose process answers, which is the one that its agents have. A memory that was never
// written is an empty one.
//
// What changes a memory is recorded with the caller's name and is on disk when the method returns. What a
// memory does not take is an error wrapping protocol.ErrMemory; one that is indexed with another embedding
// model than the one that is named is one wrapping protocol.ErrEmbedding.
type Memory interface {
	// Scopes lists the memories that there are, by name.
	Scopes(ctx context.Context) (*MemoryScopes, error)
	// Memories lists what a memory holds.
	Memories(ctx context.Context, q MemoryQuery) (*Memories, error)
	// Memory is one of them.
	Memory(ctx context.Context, scope string, id protocol.Seq) (*OneMemory, error)
	// Recall finds memories by meaning, by tags, or both.
	Recall(ctx context.Context, q Recall) (*Recalled, error)
	// Remember adds memories, all or none of them.
	Remember(ctx context.Context, r Remember) (*Remembered, error)
	// ChangeMemories changes memories, all or none of them.
	ChangeMemories(ctx context.Context, c MemoryChanges) (*MemoriesChanged, error)
	// Reindex makes the vectors of a memory that are missing or damaged. tell, unless it is nil, may be told how
	// many of how many memories are embedded.
	Reindex(ctx context.Context, r Reindex, tell func(done, of int)) (*Reindexed, error)
}

// MemoryScopes are the memories of a store: wf.memory_scopes/v1.
type MemoryScopes struct {
	Items  []MemoryScope `json:"items"`
	Schema string        `json:"schema"`
}

// MemoryScope is a memory among others.
type MemoryScope struct {
	Scope    string       `json:"scope"`
	Memories int          `json:"memories"`
	Pinned   int          `json:"pinned"`
	Model    string       `json:"model"` // that embeds it; "" before the first memory
	Head     string       `json:"head"`  // CID of its newest event
	Seq      protocol.Seq `json:"seq"`   // of that event
}

// MemoryQuery chooses what is listed of a memory. The zero query is all of the user's memory.
type MemoryQuery struct {
	Scope   string
	Tags    []string // only memories with one of these, in any case of letters
	AllTags bool     // with all of them
	Pinned  bool     // only pinned ones, the anchor included
	Oldest  bool     // in the order in which they were remembered; else the anchor, the pinned ones, the newest
	Sums    bool     // with the sha256 of each text instead of the text
	Part
}

// Memories is what a memory holds: wf.memories/v1.
type Memories struct {
	Items  []MemoryItem `json:"items"`
	Model  string       `json:"model,omitempty"` // that embeds them
	Next   string       `json:"next,omitempty"`  // Part.After of the memories behind these; "" at the end
	Schema string       `json:"schema"`
	Scope  string       `json:"scope"` // in full
}

// MemoryItem is one memory.
type MemoryItem struct {
	ID       protocol.Seq          `json:"id"`            // the seq of the event that remembered it
	Content  string                `json:"content"`       // at most protocol.MemoryMax bytes
	Sum      string                `json:"sum,omitempty"` // sha256 of the content in hex, where that was asked for
	Tags     []string              `json:"tags"`
	Pinned   bool                  `json:"pinned"` // every new conversation begins with it
	Special  string                `json:"special,omitempty"`
	Place    *protocol.MemoryPlace `json:"place,omitempty"`
	Distance *float64              `json:"distance,omitempty"` // from what was asked for, 0 to 2
	At       Time                  `json:"at"`                 // RFC 3339, in UTC
	Changed  Time                  `json:"changed"`
	By       string                `json:"by,omitempty"`
	Run      protocol.RunID        `json:"run,omitempty"` // in which it was remembered
	Step     string                `json:"step,omitempty"`
}

// OneMemory is a memory with the state of the scope that it is of: wf.memory/v1.
type OneMemory struct {
	Head   string       `json:"head"`
	Memory MemoryItem   `json:"memory"`
	Schema string       `json:"schema"`
	Scope  string       `json:"scope"`
	Seq    protocol.Seq `json:"seq"`
}

// Recall asks a memory. A text, tags or both are wanted.
type Recall struct {
	Scope   string   `json:"scope,omitempty"`
	Text    string   `json:"text,omitempty"` // the nearest in meaning; "" is by tags alone, the newest first
	Tags    []string `json:"tags,omitempty"` // only memories with one of these
	AllTags bool     `json:"all_tags,omitempty"`
	Limit   int      `json:"limit,omitempty"`  // at most so many, up to MaxRecalled; 0 is 5, and 20 by tags alone
	Within  float64  `json:"within,omitempty"` // only those no farther than this; 0 is any distance
	Model   string   `json:"model,omitempty"`  // embedding model, "" is the one that the memory has
}

// MaxRecalled is how many memories one question finds at most.
const MaxRecalled = 100

// Recalled is what was found, the nearest first: wf.memory_search/v1.
type Recalled struct {
	Items  []MemoryItem `json:"items"`
	Model  string       `json:"model"`
	Query  string       `json:"query"`
	Schema string       `json:"schema"`
	Scope  string       `json:"scope"`
}

// Remember is what is to be remembered.
type Remember struct {
	Scope string `json:"scope,omitempty"`
	Model string `json:"model,omitempty"` // that embeds a memory which has none yet; "" is the built-in one
	// New passes over what the memory holds already, with the same text, tags and place, and an anchor where
	// there is one.
	New   bool   `json:"new,omitempty"`
	Notes []Note `json:"notes,omitempty"`
}

// Note is one thing to remember. Spaces around its text are dropped, and what has the shape of a key is
// replaced by [redacted:KIND].
type Note struct {
	Content string   `json:"content"`
	Tags    []string `json:"tags,omitempty"`
	Pinned  bool     `json:"pinned,omitempty"`
	// Special is protocol.SpecialAnchor or "". The anchor takes the place of the one before it; it has no tags
	// and is always pinned.
	Special string                `json:"special,omitempty"`
	Place   *protocol.MemoryPlace `json:"place,omitempty"`
}

// Remembered is wf.memory_remembered/v1.
type Remembered struct {
	Added  int            `json:"added"`
	Head   string         `json:"head"`
	IDs    []protocol.Seq `json:"ids"` // one for each note; 0 for one that was passed over
	Schema string         `json:"schema"`
	Scope  string         `json:"scope"`
	Seq    protocol.Seq   `json:"seq"`
}

// MemoryChanges are changes of memories that are there.
type MemoryChanges struct {
	Scope   string         `json:"scope,omitempty"`
	Changes []MemoryChange `json:"changes,omitempty"`
}

// MemoryChange changes one memory; what is left out stays.
type MemoryChange struct {
	ID     protocol.Seq          `json:"id"`
	Tags   *[]string             `json:"tags,omitempty"`
	Pinned *bool                 `json:"pinned,omitempty"`
	Place  *protocol.MemoryPlace `json:"place,omitempty"`
	Remove bool                  `json:"remove,omitempty"` // it is no longer found; its history stays
}

// MemoriesChanged is wf.memory_changed/v1.
type MemoriesChanged struct {
	Head   string         `json:"head"`
	IDs    []protocol.Seq `json:"ids"`
	Schema string         `json:"schema"`
	Scope  string         `json:"scope"`
	Seq    protocol.Seq   `json:"seq"`
}

// Reindex says how a memory is indexed.
type Reindex struct {
	Scope string `json:"scope,omitempty"`
	Model string `json:"model,omitempty"` // embedding model from here on; "" is the one that the memory has
}

// Reindexed is wf.memory_reindexed/v1.
type Reindexed struct {
	Schema string `json:"schema"`
	ReindexedScope
}

// ReindexedScope is what was done for one memory.
type ReindexedScope struct {
	Scope    string `json:"scope"`
	Model    string `json:"model"`
	Memories int    `json:"memories"`
	Embedded int    `json:"embedded"` // anew
}
