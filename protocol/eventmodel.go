package protocol

// PromptSent is recorded before each visit's first model request.
type PromptSent struct {
	// Digest of P_k: the text of its CID. It is no Link, since the bytes are rebuilt from the
	// records and never stored: a link would make the run incomplete.
	Digest string `cbor:"digest" json:"digest"`
	Model  string `cbor:"model" json:"model"`
	Params Text   `cbor:"params" json:"params"` // canonical JSON
}

// Thinking is a model's reasoning; Block is the provider's own form, sent back verbatim
// inside the visit.
type Thinking struct {
	Content Text `cbor:"content" json:"content"`
	Block   Text `cbor:"block,omitempty,omitzero" json:"block,omitzero"`
}

// TextSaid is what a model said in one turn, the final one included.
type TextSaid struct {
	Content Text `cbor:"content" json:"content"`
}

// ToolCall is an intent: durable before the tool runs.
type ToolCall struct {
	Call string `cbor:"call" json:"call"`
	Name string `cbor:"name" json:"name"`
	Args Text   `cbor:"args" json:"args"` // raw JSON as the model wrote it
	// Digest tells the arguments, of which a part was hidden in Args, from others: their HMAC-SHA-256, in hex, by
	// a key of the user of the driving process. Older runs have the SHA-256.
	Digest string `cbor:"digest,omitempty" json:"digest,omitempty"`
}

// ToolResult answers the ToolCall of the same Call.
type ToolResult struct {
	Call    string `cbor:"call" json:"call"`
	Content Text   `cbor:"content" json:"content"`
	IsError bool   `cbor:"is_error" json:"is_error"`
	// Appeared is what the call left in the workspace, as far as a tool can leave anything.
	Appeared *Appeared `cbor:"appeared,omitempty" json:"appeared,omitempty"`
}

// Usage is what one model call used. What the provider does not report is null.
type Usage struct {
	Model        string `cbor:"model" json:"model"`
	Input        *int64 `cbor:"input" json:"input"`   // all prompt tokens, cached and written ones included
	Cached       *int64 `cbor:"cached" json:"cached"` // of Input: read from the prefix cache
	CacheWrite5m *int64 `cbor:"cache_write_5m" json:"cache_write_5m"`
	CacheWrite1h *int64 `cbor:"cache_write_1h" json:"cache_write_1h"`
	Output       *int64 `cbor:"output" json:"output"`
	Reasoning    *int64 `cbor:"reasoning" json:"reasoning"`
	TTFE         int64  `cbor:"ttfe_ms" json:"ttfe_ms"` // to the first event
	ThinkingMS   int64  `cbor:"thinking_ms" json:"thinking_ms"`
	TotalMS      int64  `cbor:"total_ms" json:"total_ms"`
	// Stop is why the reply is not whole: StopLength, StopRefused, StopOverflow or StopGivenUp;
	// "" where it is.
	Stop string `cbor:"stop,omitempty" json:"stop,omitempty"`
	// Window and Held, in tokens, are set with StopOverflow: what the model reads at most, as far
	// as it became known, and what the request held. Nothing of it was used. Without it Held is an estimate of
	// what the provider did not tell of Input and Output, which counts for limits.tokens.
	Window int64 `cbor:"window,omitempty" json:"window,omitempty"`
	Held   int64 `cbor:"held,omitempty" json:"held,omitempty"`
	// Kind is what the call was for: UsageTurn, UsageCompaction, …
	Kind string `cbor:"kind,omitempty" json:"kind,omitempty"`
	// Child is where the call stands that a sub-workflow made: its run counts in its parent's
	// too. nil for a call of the run itself.
	Child *ChildCall `cbor:"child,omitempty" json:"child,omitempty"`
}

// ChildCall is a model call in the journal of a sub-workflow's run.
type ChildCall struct {
	Run RunID `cbor:"run" json:"run"`
	Seq Seq   `cbor:"seq" json:"seq"` // of its usage event
}

// Why a reply is not whole.
const (
	StopLength  = "length"  // cut off: it has as many tokens as it may
	StopRefused = "refused" // kept back, by the model or a filter of its provider; it is no turn

	// StopOverflow is no reply at all: the request holds more than the model reads.
	StopOverflow = "overflow"
	// StopGivenUp is a call that was ended before its reply was whole, by a timeout or because the
	// run stopped. It is no turn, and the process that goes on makes the same call again.
	StopGivenUp = "given_up"
)

// What a model call was for.
const (
	UsageTurn       = ""           // a turn of the visit
	UsageCompaction = "compaction" // the summary of a compaction
	UsageReflection = "reflection" // a turn of the reflection before a compaction
	UsageGoal       = "goal"       // the goal of a task
	UsageSummary    = "summary"    // the summary of a task
)

// ModelFallback says that another model answered.
type ModelFallback struct {
	From   string `cbor:"from" json:"from"`
	To     string `cbor:"to" json:"to"`
	Reason string `cbor:"reason" json:"reason"`
}

// Correction says that an answer did not fit the declared output, and that the model got the reasons.
// It follows the answer.
type Correction struct {
	Number  int  `cbor:"number" json:"number"`   // from 1, over the attempt
	Reasons Text `cbor:"reasons" json:"reasons"` // one per line
}

// CompactScope is what a summary took the place of.
type CompactScope string

// The scopes of a compaction.
const (
	ScopeConversation CompactScope = "conversation" // earlier visits; the record is a Compaction
	ScopeVisit        CompactScope = "visit"        // replies and results of the running visit
)

// Compacted says that the older part of what a model reads gave way to a summary. The scope
// conversation moves the end of the conversation to Record: the visit itself, its later
// attempts and all later visits resume that. The scope visit holds for the attempt alone: its
// Replies oldest replies, with what answered them, are read as Summary from here on.
type Compacted struct {
	Scope        CompactScope `cbor:"scope" json:"scope"`
	Record       Link         `cbor:"record" json:"record"`               // conversation: the Compaction; else null
	Digest       string       `cbor:"digest" json:"digest"`               // of the prompt from here on: P_k, for a visit with what followed it
	TokensBefore int64        `cbor:"tokens_before" json:"tokens_before"` // of the newest request, as the model counted them
	TokensAfter  int64        `cbor:"tokens_after" json:"tokens_after"`   // estimated by the share of bytes that stayed

	Replies int  `cbor:"replies,omitempty" json:"replies,omitempty"`
	Summary Text `cbor:"summary,omitempty,omitzero" json:"summary,omitzero"` // visit; a conversation's is in Record
	// Model wrote the summary; "" where it is an extract, and then Error says why, if a model
	// was asked.
	Model string `cbor:"model,omitempty" json:"model,omitempty"`
	Error Text   `cbor:"error,omitempty,omitzero" json:"error,omitzero"`
}

// CompactionDraft is emitted by a performer in the place of a Compacted of the scope
// conversation: the writer of the journal makes the Compaction of it, and stores both in one
// commit.
type CompactionDraft struct {
	Compacted Compacted // without Record
	Covers    Link      // the last visit that the summary stands for
	Summary   string
	Inject    string // recalled text that follows the summary, "" for none
}

// CompactionAsked has the next visit of an agent begin with a compaction of its conversation,
// however full that is.
type CompactionAsked struct {
	By string `cbor:"by" json:"by"`
}

// Delta is a piece of output on its way to live watchers. It is never stored and never a
// cursor.
type Delta struct {
	Kind string `json:"kind"` // text, thinking, stdout, stderr
	Text string `json:"text"`
}

// EvDelta is the type of a Delta on the wire.
const EvDelta EventType = "delta"

// EventType names the type of a Delta.
func (Delta) EventType() EventType { return EvDelta }
