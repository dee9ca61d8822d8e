package protocol

import "fmt"

// StepStarted is the intent: durable before the visit acts. Its fields are those of the
// StepRecord that are known before the outcome.
type StepStarted struct {
	Start      Link   `cbor:"start" json:"start"`
	Parents    []Link `cbor:"parents" json:"parents"`
	Role       string `cbor:"role" json:"role"`
	Visit      int    `cbor:"visit" json:"visit"`
	Item       *Item  `cbor:"item" json:"item"`
	Edge       int    `cbor:"edge" json:"edge"`
	Via        Via    `cbor:"via" json:"via"`
	EdgePrompt Text   `cbor:"edgePrompt" json:"edgePrompt"`
	Resumes    Link   `cbor:"resumes" json:"resumes"`
	Tools      Link   `cbor:"tools" json:"tools"`
	Inject     Link   `cbor:"inject" json:"inject"`
	Attempt    int    `cbor:"attempt" json:"attempt"`           // from 1, over the whole visit
	Of         int    `cbor:"of,omitempty" json:"of,omitempty"` // in a fan-out: the number of items
	// Messages is how many of the messages that waited, the oldest first, are in Inject.
	Messages int `cbor:"messages,omitempty" json:"messages,omitempty"`
	// Compact is set where a person asked for a compaction, which this visit begins with.
	Compact bool `cbor:"compact,omitempty" json:"compact,omitempty"`
	// Preparing is set where the limits of a provider held the visit before Tools and Inject were there: it does nothing
	// before another step_started brings them.
	Preparing bool `cbor:"preparing,omitempty" json:"preparing,omitempty"`
}

// Held is a visit that is kept back by the limits of a provider, or since that is down: until it is released it does nothing, and its time
// does not count.
type Held struct {
	Provider string `cbor:"provider" json:"provider"` // as the config calls it
	Limit    string `cbor:"limit" json:"limit"`       // HeldByRequests, …
	Max      int64  `cbor:"max,omitempty" json:"max,omitempty"`
	// Of an outage: in the words of the provider, and when it is asked again, in unix µs.
	Why   string `cbor:"why,omitempty" json:"why,omitempty"`
	Until int64  `cbor:"until,omitempty" json:"until,omitempty"`
}

// What a visit is held by.
const (
	HeldByRequests   = "requests"    // Max in a minute
	HeldByTokens     = "tokens"      // Max in a minute
	HeldByInFlight   = "in_flight"   // Max at once
	HeldByRetryAfter = "retry_after" // the provider asked to wait
	HeldByOutage     = "outage"      // it is down, or takes no calls for now
)

// String says it in words.
func (h Held) String() string {
	switch h.Limit {
	case HeldByRequests:
		return fmt.Sprintf("waits for the limit of %s a minute of the provider %s", Plural(int(h.Max), "request"), h.Provider)
	case HeldByTokens:
		return fmt.Sprintf("waits for the limit of %s a minute of the provider %s", Plural(int(h.Max), "token"), h.Provider)
	case HeldByInFlight:
		return fmt.Sprintf("waits for the limit of %s at once of the provider %s", Plural(int(h.Max), "request"), h.Provider)
	case HeldByRetryAfter:
		return fmt.Sprintf("waits, since the provider %s asked to", h.Provider)
	case HeldByOutage:
		return fmt.Sprintf("waits for the provider %s, which fails: %s", h.Provider, h.Why)
	}
	return "waits for the provider " + h.Provider
}

// Released is a visit that goes on after it was held.
type Released struct {
	MS int64 `cbor:"ms" json:"ms"` // for so long
}

// AttemptFailed is one try that did not work.
type AttemptFailed struct {
	Attempt int       `cbor:"attempt" json:"attempt"`
	Error   ErrorInfo `cbor:"error" json:"error"`
	RetryAt int64     `cbor:"retry_at" json:"retry_at"` // unix µs; 0 when there is no further try
	// Keeps is set where a further attempt goes on with what the journal holds of the visit, but for a reply that was
	// not whole; without it the visit begins anew.
	Keeps bool `cbor:"keeps,omitempty" json:"keeps,omitempty"`
}

// StepCompleted ends a visit, also one that failed for good.
type StepCompleted struct {
	Record    Link       `cbor:"record" json:"record"`
	Result    Link       `cbor:"result" json:"result"` // Result of a sub-workflow
	MS        int64      `cbor:"ms" json:"ms"`
	Workspace *GitState  `cbor:"workspace" json:"workspace"`
	Status    StepStatus `cbor:"status,omitempty" json:"status,omitempty"` // as in the record
	// Artifacts is the tree of the files that the steps of a sub-workflow keep, of each path the newest; missing where there
	// are none. Those of the visit itself are in its record.
	Artifacts Link `cbor:"artifacts,omitempty,omitzero" json:"artifacts,omitzero"`
}

// GitState is what a visit left the workspace in; null outside of git.
type GitState struct {
	Head string `cbor:"git_head" json:"git_head"`
	// Dirty is whether files differed from the commit. Without it that is unknown: only older versions asked
	// git, which runs the programs that a repository names.
	Dirty *bool `cbor:"dirty,omitempty" json:"dirty,omitempty"`
}

// SandboxTier is what confined the commands of a visit. Met is set behind a command of a run role that
// failed as at a wall: what the walls let through, and which keys open them.
type SandboxTier struct {
	Tier string `cbor:"tier" json:"tier"`
	ABI  int    `cbor:"abi" json:"abi"`
	Met  string `cbor:"met,omitempty" json:"met,omitempty"`
	// Appeared is set behind a command of a run role.
	Appeared *Appeared `cbor:"appeared,omitempty" json:"appeared,omitempty"`
}

// OwnCopy says that a visit has a copy of the workspace for itself. All visits of a fan-out begin with the tree Base.
type OwnCopy struct {
	Base   Link  `cbor:"base" json:"base"`
	Files  int   `cbor:"files" json:"files"`
	Bytes  int64 `cbor:"bytes" json:"bytes"`   // that were written
	Shared int64 `cbor:"shared" json:"shared"` // bytes that the file system shares: blocks of the workspace, or files below a layer
}
