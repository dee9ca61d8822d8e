// Package memory is what agents know beyond one conversation: facts with tags, found by meaning
// or by tag, kept as a journal of events.
//
//	events ─Fold─► State ─┬─► pins, tags, lists            (pure)
//	                      └─► vectors (derived) ─► Recall  (exact cosine)
//	remember, pin, tag, forget ─► events, appended behind the newest one that was read
//
// # Words
//
// A scope is one memory: of a role, a workflow, a user, or shared under a name; each has a
// journal of its own, under the head memory/<scope>. A memory in it has an id, the seq of the
// event that remembered it. A pinned one enters every new context; the anchor is a special one
// that is placed before all others. A removed one leaves a tombstone: its events stay.
//
// # Found
//
// Recall measures every candidate: no approximate index, so the only memory with a tag is
// found however far it is. With tags only those that have them are measured. Vectors are
// derived from the texts and made when they are missed.
//
// # Two processes
//
// A change is decided on what was read and appended behind it; a late writer reads on and
// decides again. A change that carries a key and was made before is not made twice.
//
// # Prompts
//
// What is recalled enters a prompt as recorded text at the start of a visit, or after a
// compaction. A change of the memory never changes a prompt that was sent.
package memory

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"unicode/utf8"

	"wf/protocol"
)

// Memory is one of a scope, as it stands.
type Memory struct {
	ID      protocol.Seq
	Content protocol.Text // long ones as a link, and of a snapshot only these; see Store.Text
	Tags    []string
	Pinned  bool
	Special string                // protocol.SpecialAnchor, or ""
	Place   *protocol.MemoryPlace // where in a tree of files it lies, or nil
	At      int64                 // when it was remembered, unix µs
	Changed int64                 // when it was changed last, unix µs
	By      string
	Run     protocol.RunID
	Step    string

	event protocol.Seq // that tells the content
	lent  *lent        // of a snapshot: what stands for Content
}

// Sum is the sha256 of the content, which need not be read for it: a long text is a raw block,
// named by the same hash.
func (m Memory) Sum() [sha256.Size]byte {
	switch {
	case m.lent != nil:
		return m.lent.sum
	case !m.Content.Link.Defined():
		return sumOf(m.Content.S)
	}
	var sum [sha256.Size]byte
	hash := m.Content.Link.CID().Hash()
	copy(sum[:], hash[max(0, len(hash)-len(sum)):])
	return sum
}

func sumOf(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// Hit is a memory that was found.
type Hit struct {
	Memory
	Distance *float64 // from what was asked for, 0 to 2; nil where only tags were
}

// Mode says which tags a memory must have.
type Mode string

// Any one of the tags, or all of them.
const (
	Any Mode = "or"
	All Mode = "and"
)

// Bounds and defaults.
const (
	DefaultTopK    = 3  // memories recalled unasked
	DefaultRecall  = 5  // hits of a question
	DefaultContext = 20 // hits by tags alone
	MaxHits        = 100
	RecentListed   = 10 // memories that are not pinned, in a list
	TagMax         = 100
	TagsMax        = 32
)

// tidy gives tags without spaces around them and each once. What is no UTF-8 is replaced.
func tidy(tags []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, t := range tags {
		t = strings.Join(strings.Fields(strings.ToValidUTF8(t, "\ufffd")), " ")
		if t == "" || seen[foldTag(t)] {
			continue
		}
		seen[foldTag(t)] = true
		out = append(out, t)
	}
	return out
}

// keptTags are tags as a memory keeps them. Too many or too long ones are an ErrNote.
func keptTags(tags []string) ([]string, error) {
	out := tidy(tags)
	if len(out) > TagsMax {
		return nil, refused("", "%d tags are too many: a memory has at most %d", len(out), TagsMax)
	}
	for i, t := range out {
		if n := utf8.RuneCountInString(t); n > TagMax {
			return nil, refused("", "the tag %q of %d characters is too long: a tag has at most %d", cut(t, 40), n, TagMax)
		}
		out[i] = Kept(t)
	}
	return out, nil
}

// foldTag is a tag as it is compared: Deploy and deploy are the same.
func foldTag(t string) string { return strings.ToLower(t) }

// quoted is a tag in a list; one with a comma, quote or bracket is written as a JSON string.
func quoted(t string) string {
	if strings.ContainsAny(t, ",\"[]\\") {
		return strconv.Quote(t)
	}
	return t
}

// TagList is how tags are written: a,b,"c, d".
func TagList(tags []string) string {
	out := make([]string, len(tags))
	for i, t := range tags {
		out[i] = quoted(t)
	}
	return strings.Join(out, ",")
}
