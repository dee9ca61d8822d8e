package protocol

// TurnSchema names the JSON form of a Turn that run roles read.
const TurnSchema = "wf.turn/v1"

// Turn is one attempt of a visit: everything a Performer may act on. All templates in it
// are rendered.
type Turn struct {
	Run      RunID
	Workflow string // its name
	Step     StepID
	Visit    int
	Attempt  int    // from 1
	Key      string // WF_STEP_KEY: stable over attempts, distinct between visits and runs
	// TraceParent is for the programs that the visit starts, never for a model or a record: the traceparent of W3C
	// Trace Context; "" where none is known.
	TraceParent string

	Role       Role   // the pinned definition
	EdgePrompt string // rendered, cut
	Item       *ItemValue
	Verdict    *Verdict // of an always role: how the run ends; else nil
	Inputs     JSON     // canonical object

	Question string            // ActAsk, rendered
	Choices  []Choice          // ActAsk with Role.ChoicesOf: what that gave
	Fields   []string          // ActAsk with Role.Form: its fields as they were written, nil where that is not known
	Env      map[string]string // ActRun and tools, rendered
	Stdin    *Stdin            // ActRun, rendered; nil is the turn itself
	Values   JSON              // ActSet and ActWorkflow (with): canonical object
	Wait     Wait              // ActWait, rendered
	Confined bool              // ActRun: the command runs in the sandbox
	Secrets  []string          // names declared by the workflow
	Models   []string          // tried in order; the run's override applied
	Context  ContextMode       // the run's override, "" for none: it holds in sub-workflows too
	MCP      []MCPServer       // declared by the workflow
	Cache    string            // what the run does about results that can be reused; it holds in sub-workflows too
	Trial    string            // tells the run apart from others that perform the same, in keys of results alone; its workspace is a copy; it holds in sub-workflows too
	Origin   RunID             // the run whose prefixes providers may have in their caches; "" is Run
	ChildOf  string            // ActWorkflow with Origin: Key as the visit would have it in that run

	Workspace string          // absolute; commands run in Workspace joined with Role.Dir
	At        string          // where confined commands find Workspace, if that can be had: a copy lies where the directory does; "" is Workspace itself
	Private   string          // where confined commands keep what is theirs (HOME, TMPDIR, caches), for a Workspace that goes when the visit is recorded; "" is as for any workspace
	File      string          // path of the definition; relative script files are found beside it
	Sources   map[string]Link // ActWorkflow: the YAML texts of sub-workflows, by the CIDs of their definitions

	// Reuse is set where the result of the visit may be reused; nil for others.
	Reuse *Reuse

	// Given are the files that the visit is given of earlier ones, and Artifacts the directory in which they lie while it is
	// performed, read-only: ROLE/PATH, of a fan-out ROLE/INDEX/PATH. "" is none.
	Given     []Given
	Artifacts string

	History History // the conversation and its ancestors; loaded for agents and commands
	// Transcript is the events of this visit so far, texts resolved: what a crash resumes from.
	// Between them stand the suspended and resumed events of the run: where a process went on
	// with a run that was not suspended, the one before it died.
	Transcript []Entry
	Answers    []AnswerTo

	// LastUsage is how many tokens the model counted in the first request of the visit that
	// this one resumes; 0 is not known. It was recorded then: a visit that is performed again
	// sees the same.
	LastUsage int64
	// Compact is set where a person asked that the visit begin with a compaction.
	Compact bool
	// Windows are how many tokens models read at most, by name, as far as refusals showed the run
	// before the visit was performed.
	Windows map[string]int64
	// Allowed are the tool calls that a person allowed for the whole run: digest → the name of that person.
	Allowed map[string]string
}

// Reuse is what a visit, whose result may be reused, sees in the place of what no result may follow from.
type Reuse struct {
	Key     string   // of the result: what names a run or a step for the command is made of it
	Environ []string // NAME=value, all that it inherits
	Private string   // directory for what it keeps for itself while it runs
}

// Given are the artifacts of a role, of its nearest visit among the ancestors of another.
type Given struct {
	Role  string
	Ran   bool   // there is such a visit
	Batch bool   // it is a fan-out
	Trees []Link // of each item, or one; a null link is one without files
}

// ItemValue is a fan-out item with its value.
type ItemValue struct {
	Index int
	Value JSON
}

// AnswerTo is an answer with the question it answers, in journal order.
type AnswerTo struct {
	Waiting WaitingFor
	Answer  Answered // zero where a timer fired
	Fired   bool
	At      int64 // unix µs
}

// History is what the messages of one visit are built from: records alone, never the journal.
type History struct {
	Format int
	Role   string
	System string // role prompt of the pinned definition
	Schema string // JSON Schema of the frontmatter, "" is none
	Inputs JSON   // canonical object
	Tools  string // canonical JSON tool list as recorded, "" is none
	// Goal is that of a task, from its task_started; "" before it is known. Summaries is how
	// many summaries of earlier tasks it begins with.
	Goal      string
	Summaries int
	Visit     Past // the visit to build for; its outcome is not read

	// Every ancestor StepRecord (and Compaction) of Visit is in Records, which other visits of
	// the run share and which may hold more, or in Past, in any order.
	Records *Records
	Past    []Past
}

// Ancestors are the records that may have come before the visit.
func (h *History) Ancestors() *Records { return h.Records.With(h.Past...) }

// Told are the messages to a visit with no more than a limit of what happened before it, of which the newest is there.
type Told struct {
	Messages []Message
	Earlier  int // bytes, as JSON, of what they say of earlier visits and steps
	Omitted  int // earlier visits of the conversation, the oldest, that they leave out
}

// Past is a StepRecord with its payloads.
type Past struct {
	CID        Link
	Role       string
	Visit      int
	Item       *int // index in the fan-out
	Parents    []Link
	Resumes    Link
	EdgePrompt string
	Mentions   []string // Edge.Mentions of its edge
	Inject     string
	Status     StepStatus
	Text       string
	Data       JSON
	Error      *ErrorInfo
	Artifacts  Link

	// Compaction is set for a Compaction record; the step fields are then empty but Role.
	Compaction *PastCompaction
}

// PastCompaction is a Compaction with its summary.
type PastCompaction struct {
	Prior, Covers Link
	Summary       string
}

// Conclusion is what a Performer returns for a visit that came to an end.
type Conclusion struct {
	Text   *string // verbatim final text, or nil for none
	Data   JSON    // validated fields, an object, or nil
	Result Link    // of a sub-workflow
}
