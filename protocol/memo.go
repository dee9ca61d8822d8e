package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Caching says that a result of a role is reused where all that it follows from is the same.
type Caching struct {
	// Whole takes all files of the workspace for inputs, and all may be changed; of an agent always, where its tools see
	// files. Inputs, Outputs, Env and Toolchain say what else a command sees, and changes; not with Whole.
	Whole     bool     `cbor:"whole,omitempty" json:"whole,omitempty"`
	Inputs    []string `cbor:"inputs,omitempty" json:"inputs,omitempty"`       // globs of the workspace
	Outputs   []string `cbor:"outputs,omitempty" json:"outputs,omitempty"`     // globs of the workspace
	Env       []string `cbor:"env,omitempty" json:"env,omitempty"`             // names of variables of the environment, sorted
	Toolchain []string `cbor:"toolchain,omitempty" json:"toolchain,omitempty"` // commands that say which tools there are
	Scope     string   `cbor:"scope,omitempty" json:"scope,omitempty"`         // "" or CacheWorkflow
	For       int64    `cbor:"for,omitempty" json:"for_us,omitempty"`          // µs after which a result is not reused; 0 is never
}

// CacheWorkflow is the scope of results that runs of one workflow share; without it all runs of a store do.
const (
	CacheStore    = "store"
	CacheWorkflow = "workflow"
)

// What a run does about results that can be reused.
const (
	CacheOff     = "off"     // none is reused; what is performed is kept for others
	CacheOffline = "offline" // none is performed
)

// ParseCache reads what a run is to do about results: "", CacheOff or CacheOffline.
func ParseCache(text string) (string, error) {
	switch text {
	case "", CacheOff, CacheOffline:
		return text, nil
	}
	return "", fmt.Errorf("%q is neither off nor offline", text)
}

// KindMemo is the kind of a Memo.
const KindMemo = "memo"

// A Memo is what came of a performance. It links payloads alone, no records: which run it was is a text.
type Memo struct {
	Kind    string       `cbor:"kind"`
	V       int          `cbor:"v"`
	Key     string       `cbor:"key"`
	Origin  string       `cbor:"origin"` // RUN:STEP
	Output  Link         `cbor:"output"` // as in a StepRecord
	Data    Link         `cbor:"data"`
	Changes []MemoChange `cbor:"changes"` // by path
	Parts   []MemoDigest `cbor:"parts"`   // of Key, in order
	// Opening is how many tokens the model counted in the first request of an agent; 0 is not known.
	Opening int64 `cbor:"opening,omitempty"`
}

// A MemoDigest is a MemoPart as it is stored.
type MemoDigest struct {
	Name   string `cbor:"name"`
	Digest string `cbor:"digest"` // hex
}

// Remade is the key of the parts of a memo; "" where a part is none.
func (m *Memo) Remade() string {
	parts := make([]MemoPart, len(m.Parts))
	for i, p := range m.Parts {
		digest, err := hex.DecodeString(p.Digest)
		if err != nil || len(digest) != sha256.Size {
			return ""
		}
		parts[i] = MemoPart{p.Name, [sha256.Size]byte(digest)}
	}
	return MemoKey(parts)
}

// A MemoChange is a file or link that a performance made, changed or removed. Where there was none, or is none any more,
// Mode is empty.
type MemoChange struct {
	Path   string     `cbor:"path"`
	Before MemoBefore `cbor:"before"`
	After  MemoAfter  `cbor:"after"`
}

// MemoBefore is what lay at a path. Its content is not kept: Hash is the text of its CID.
type MemoBefore struct {
	Mode string `cbor:"mode"`
	Hash string `cbor:"hash"`
	Size int64  `cbor:"size"`
}

// MemoAfter is what lies there then.
type MemoAfter struct {
	Mode string `cbor:"mode"`
	Link Link   `cbor:"link"`
	Size int64  `cbor:"size"`
}

// MemoKeyFormat is how keys are made: see MemoKey.
const MemoKeyFormat = "wf.memo/1"

// A MemoPart is one of the things that a result follows from. Name tells people what it is.
type MemoPart struct {
	Name   string
	Digest [sha256.Size]byte
}

// NewMemoPart is a part with a value.
func NewMemoPart(name string, value []byte) MemoPart { return MemoPart{name, sha256.Sum256(value)} }

// MemoKey is the key of a result: the SHA-256, in hex, of MemoKeyFormat, a zero byte, and for each part its name, a zero
// byte and the SHA-256 of its value.
func MemoKey(parts []MemoPart) string {
	h := sha256.New()
	h.Write(append([]byte(MemoKeyFormat), 0))
	for _, p := range parts {
		h.Write(append([]byte(p.Name), 0))
		h.Write(p.Digest[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Names of the parts of a key that the request of an agent gives.
const (
	MemoTools   = "tools"
	memoMessage = "message "
)

// PromptParts are those of the first request of an agent, by its canonical bytes: the tools, and each message as
// "message N (ROLE)", N from 1. Each is a line of them.
func PromptParts(prompt []byte) (parts []MemoPart) {
	for n := 0; len(prompt) > 0; n++ {
		line, rest, _ := bytes.Cut(prompt, []byte{'\n'})
		name := MemoTools
		if n > 0 {
			role, _ := bytes.CutPrefix(line, []byte(`{"role":"`))
			role, _, _ = bytes.Cut(role, []byte{'"'})
			name = fmt.Sprintf("%s%d (%s)", memoMessage, n, role[:min(len(role), 20)])
		}
		parts, prompt = append(parts, NewMemoPart(name, line)), rest
	}
	return parts
}

// OfPrompt reports whether a part of that name is one of PromptParts.
func OfPrompt(name string) bool { return name == MemoTools || strings.HasPrefix(name, memoMessage) }

// MemoKeySize is the length of a key.
const MemoKeySize = 2 * sha256.Size

// Reused says that a visit takes an earlier result.
type Reused struct {
	// Memo is the text of a CID, and no Link: what else a memo holds may be dropped, and the run is complete without it.
	Memo   string `cbor:"memo" json:"memo"`
	Key    string `cbor:"key" json:"key"`
	Origin string `cbor:"origin" json:"origin"`                   // RUN:STEP that was performed
	Files  int    `cbor:"files,omitempty" json:"files,omitempty"` // that the result changes
	Spared int64  `cbor:"spared,omitempty" json:"spared_ms,omitempty"`
	// Opening is that of the memo: the next visit of the conversation decides by it whether to compact.
	Opening int64 `cbor:"opening,omitempty" json:"opening,omitempty"`
}

// Why a visit does not take an earlier result, or its own is not kept.
const (
	MemoNone     = "none"     // there is no result of this role
	MemoDiffers  = "differs"  // Part is the first that differs from the newest result of the role
	MemoConflict = "conflict" // Part is a path at which another file lies than before or after the result
	MemoExpired  = "expired"  // the result is older than the role says
	MemoLost     = "lost"     // a part of the result is not in the store any more
	MemoOff      = "off"      // the run reuses none
	MemoCannot   = "cannot"   // Detail says what forbids it
)

// NotReused says why a visit of a role that reuses results is performed.
type NotReused struct {
	Key    string `cbor:"key,omitempty" json:"key,omitempty"`
	Why    string `cbor:"why" json:"why"`
	Part   string `cbor:"part,omitempty" json:"part,omitempty"`             // the part of the key, or the path
	Detail Text   `cbor:"detail,omitempty,omitzero" json:"detail,omitzero"` // for people
	Origin string `cbor:"origin,omitempty" json:"origin,omitempty"`         // RUN:STEP of the result that it was compared with
}

// Text says it in a sentence.
func (n NotReused) Text() string {
	switch n.Why {
	case MemoNone:
		return "there is no earlier result of this role"
	case MemoDiffers:
		return fmt.Sprintf("%s differs from that of %s", n.Part, n.Origin)
	case MemoConflict:
		return fmt.Sprintf("%s is neither as before nor as after %s, and is left alone", n.Part, n.Origin)
	case MemoExpired:
		return "the result of " + n.Origin + " is too old: " + n.Detail.S
	case MemoLost:
		return "a part of the earlier result is not stored any more"
	case MemoOff:
		return "the run reuses no results"
	}
	return n.Detail.S
}

// NotStored says why the result of a visit is not kept for others.
type NotStored struct {
	Key    string `cbor:"key,omitempty" json:"key,omitempty"`
	Part   string `cbor:"part,omitempty" json:"part,omitempty"` // the path
	Detail Text   `cbor:"detail,omitempty,omitzero" json:"detail,omitzero"`
}

// The event types.
func (Reused) EventType() EventType    { return EvReused }
func (NotReused) EventType() EventType { return EvNotReused }
func (NotStored) EventType() EventType { return EvNotStored }
