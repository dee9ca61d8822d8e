package protocol

import (
	"encoding/json"

	"wf/protocol/dagcbor"
)

// Kinds of our own blocks, the value of their "kind" field.
const (
	KindWorkflow   = "workflow"
	KindStart      = "start"
	KindStep       = "step"
	KindCompaction = "compaction"
	KindResult     = "result"
	KindEvent      = "event"
	KindChunks     = "chunks"
	KindGroup      = "group"
	KindArchive    = "archive"
	KindTree       = "tree"
	KindFile       = "file"
)

// RecordVersion is the "v" of every record written by this binary.
const RecordVersion = 1

// Format is the newest version of the message renderer; a Start pins the one in force.
const Format = 2

// Semantics is the newest version of the firing rules and expressions.
const Semantics = 3

// ChunkSize is the size in bytes above which a payload is stored as Chunks, and of each
// chunk but the last.
const ChunkSize = 1 << 20

// EdgePromptMax is the length in bytes at which a rendered edge prompt is cut.
const EdgePromptMax = 32 << 10

// MaxSafeInt bounds the integers of records and of data: ±(2^53−1).
const MaxSafeInt = dagcbor.MaxSafeInt

// Start is where a run's conclusions begin.
type Start struct {
	Kind      string `cbor:"kind" json:"kind"`
	V         int    `cbor:"v" json:"v"`
	Workflow  Link   `cbor:"workflow" json:"workflow"`   // the canonical Workflow block
	Inputs    Link   `cbor:"inputs" json:"inputs"`       // raw: canonical JSON object
	Format    int    `cbor:"format" json:"format"`       // message renderer
	Semantics int    `cbor:"semantics" json:"semantics"` // firing rules and expressions
	Continues []Link `cbor:"continues" json:"continues"` // StepRecords a fork goes on from, else null
}

// Via says how a visit was reached.
type Via string

// The ways to reach a visit: by an edge, by an exhausted bound's on_limit, from START, as an always role when the
// run closes.
const (
	ViaEdge   Via = "edge"
	ViaLimit  Via = "limit"
	ViaStart  Via = "start"
	ViaAlways Via = "always"
)

// StepStatus is the outcome of a visit.
type StepStatus string

// A step went well, failed for good, or was an empty fan-out.
const (
	StepOK      StepStatus = "ok"
	StepFailed  StepStatus = "failed"
	StepSkipped StepStatus = "skipped"
)

// Item is the place of a visit in a fan-out.
type Item struct {
	Index int  `cbor:"index" json:"index"`
	Value Link `cbor:"value" json:"value"` // raw: canonical JSON
}

// StepRecord is what a visit concluded. It holds nothing that depends on when, where or
// how often it was tried.
type StepRecord struct {
	Kind       string     `cbor:"kind" json:"kind"`
	V          int        `cbor:"v" json:"v"`
	Start      Link       `cbor:"start" json:"start"`
	Parents    []Link     `cbor:"parents" json:"parents"` // StepRecords or Start, in declared order
	Role       string     `cbor:"role" json:"role"`
	Visit      int        `cbor:"visit" json:"visit"` // 1 + the visit of what it resumes
	Item       *Item      `cbor:"item" json:"item"`
	Edge       int        `cbor:"edge" json:"edge"` // index in Workflow.Edges; −1 with ViaAlways
	Via        Via        `cbor:"via" json:"via"`
	EdgePrompt string     `cbor:"edgePrompt" json:"edgePrompt"` // ≤ EdgePromptMax; "" in old data
	Resumes    Link       `cbor:"resumes" json:"resumes"`       // StepRecord or Compaction, or null
	Tools      Link       `cbor:"tools" json:"tools"`           // raw: canonical JSON tool list, or null
	Inject     Link       `cbor:"inject" json:"inject"`         // raw: recorded dynamic text, or null
	Output     Link       `cbor:"output" json:"output"`         // raw or Chunks: verbatim final text, or null
	Data       Link       `cbor:"data" json:"data"`             // raw: canonical JSON object, or null
	Status     StepStatus `cbor:"status" json:"status"`
	Error      Link       `cbor:"error" json:"error"` // raw: canonical JSON ErrorInfo, or null
	// Artifacts is the tree of the files that the role says are kept; missing where there are none.
	Artifacts Link `cbor:"artifacts,omitempty,omitzero" json:"artifacts,omitzero"`
}

// Compaction replaces the older part of a conversation: render Summary, then the visits
// after Covers up to Prior.
type Compaction struct {
	Kind    string `cbor:"kind" json:"kind"`
	V       int    `cbor:"v" json:"v"`
	Start   Link   `cbor:"start" json:"start"`
	Role    string `cbor:"role" json:"role"`
	Prior   Link   `cbor:"prior" json:"prior"`   // newest visit or compaction before it
	Covers  Link   `cbor:"covers" json:"covers"` // last visit summarised
	Summary Link   `cbor:"summary" json:"summary"`
	Tools   Link   `cbor:"tools" json:"tools"`
	Inject  Link   `cbor:"inject" json:"inject"`
}

// Result is what a run concluded: one CID for "this ended thus".
type Result struct {
	Kind    string    `cbor:"kind" json:"kind"`
	V       int       `cbor:"v" json:"v"`
	Start   Link      `cbor:"start" json:"start"`
	Parents []Link    `cbor:"parents" json:"parents"`
	Status  RunStatus `cbor:"status" json:"status"`   // done or failed
	Outputs Link      `cbor:"outputs" json:"outputs"` // raw: canonical JSON object, or null
}

// Chunks is a payload above ChunkSize.
type Chunks struct {
	Kind  string `cbor:"kind" json:"kind"`
	V     int    `cbor:"v" json:"v"`
	Size  int64  `cbor:"size" json:"size"` // bytes in all
	Parts []Link `cbor:"parts" json:"parts"`
}

// Archive names the runs of an archive: run ids are in no journal. It is the last root, and the
// head of each run is one before it.
type Archive struct {
	Kind string        `cbor:"kind" json:"kind"`
	V    int           `cbor:"v" json:"v"`
	Runs []ArchivedRun `cbor:"runs" json:"runs"` // first the one that was exported, then those of its sub-workflows
}

// ArchivedRun is a run in an Archive.
type ArchivedRun struct {
	Run  RunID `cbor:"run" json:"run"`
	Head Link  `cbor:"head" json:"head"`
	Seq  Seq   `cbor:"seq" json:"seq"` // of the head
	// Files is the FilesKept of the run; null where its files were left out, or none were recorded.
	Files Link `cbor:"files,omitempty,omitzero" json:"files,omitzero"`
}

// ErrorInfo says why a visit failed, in a record. It holds nothing volatile: no duration,
// no request id, no host.
type ErrorInfo struct {
	Code    string `cbor:"code" json:"code"`       // for example exit_code, timeout, output_validation
	Phase   string `cbor:"phase" json:"phase"`     // run, model, tool, output_validation, expression, …
	Message string `cbor:"message" json:"message"` // for people
}

// Error makes an ErrorInfo an error.
func (e *ErrorInfo) Error() string { return e.Phase + ": " + e.Message }

// JSON is a JSON value as text.
type JSON = json.RawMessage
