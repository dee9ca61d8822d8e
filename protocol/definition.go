package protocol

// Workflow is the canonical definition: its CID pins the behaviour of every run started
// from it. Comments, key order, quoting and sugar of the YAML do not reach it.
//
// Unset modifiers are left out of the block, so that a later one does not move old CIDs.
// Durations are microseconds, money is micro-dollars, decimals are strings.
type Workflow struct {
	Kind        string           `cbor:"kind" json:"kind"`
	V           int              `cbor:"v" json:"v"`
	Name        string           `cbor:"name" json:"name"`
	Description string           `cbor:"description,omitempty" json:"description,omitempty"`
	Inputs      map[string]Input `cbor:"inputs,omitempty" json:"inputs,omitempty"`
	Limits      Limits           `cbor:"limits,omitempty,omitzero" json:"limits,omitzero"`
	Secrets     []string         `cbor:"secrets,omitempty" json:"secrets,omitempty"` // sorted
	Roles       []Role           `cbor:"roles" json:"roles"`                         // sorted by name; defaults are merged in
	Edges       []Edge           `cbor:"edges" json:"edges"`                         // in declared order, START edges explicit
	Always      []string         `cbor:"always,omitempty" json:"always,omitempty"`   // roles outside of the edges, in the order in which they run
	Outputs     []NamedTemplate  `cbor:"outputs,omitempty" json:"outputs,omitempty"` // sorted by name
	MCP         []MCPServer      `cbor:"mcp,omitempty" json:"mcp,omitempty"`         // sorted by name
	Schedule    *Schedule        `cbor:"schedule,omitempty" json:"schedule,omitempty"`
	Webhook     *Webhook         `cbor:"webhook,omitempty" json:"webhook,omitempty"`
	Notify      []Sink           `cbor:"notify,omitempty" json:"notify,omitempty"` // sorted by name
	Concurrency *Concurrency     `cbor:"concurrency,omitempty" json:"concurrency,omitempty"`
	Workspace   *Workspace       `cbor:"workspace,omitempty" json:"workspace,omitempty"`
}

// MCPServer offers tools to agents, as mcp:NAME/TOOL. Exactly one of Command and URL is set.
type MCPServer struct {
	Name    string     `cbor:"name" json:"name"`
	Command []string   `cbor:"command,omitempty" json:"command,omitempty"` // program and arguments; spoken to over stdin and stdout
	Env     []MCPValue `cbor:"env,omitempty" json:"env,omitempty"`         // of Command, sorted by name
	URL     string     `cbor:"url,omitempty" json:"url,omitempty"`         // http or https
	Headers []MCPValue `cbor:"headers,omitempty" json:"headers,omitempty"` // of requests to URL, sorted by name

	// Of Command. A program that lies in the workspace is confined unless it says SandboxOff, any other
	// if it says SandboxOn; Network and NetworkHosts are those of a role, for a confined one.
	Sandbox      string   `cbor:"sandbox,omitempty" json:"sandbox,omitempty"`
	Network      string   `cbor:"network,omitempty" json:"network,omitempty"`
	NetworkHosts []string `cbor:"network_hosts,omitempty" json:"network_hosts,omitempty"`
}

// MCPValue is a variable or a header with its value: fixed, or that of an environment variable
// that is kept secret.
type MCPValue struct {
	Name   string `cbor:"name" json:"name"`
	Value  string `cbor:"value,omitempty" json:"value,omitempty"`
	Secret string `cbor:"secret,omitempty" json:"secret,omitempty"`
}

// Input declares a value the run is started with.
type Input struct {
	Type        string `cbor:"type,omitempty" json:"type,omitempty"` // string integer number boolean array object; "" is any
	Required    bool   `cbor:"required,omitempty" json:"required,omitempty"`
	Default     string `cbor:"default,omitempty" json:"default,omitempty"` // canonical JSON, "" is none
	Enum        string `cbor:"enum,omitempty" json:"enum,omitempty"`       // canonical JSON array
	Description string `cbor:"description,omitempty" json:"description,omitempty"`
}

// Limits bound a run; 0 is none, but for Steps, with the default DefaultSteps.
type Limits struct {
	Steps    int   `cbor:"steps,omitempty" json:"steps,omitempty"`
	Duration int64 `cbor:"duration,omitempty" json:"duration_us,omitempty"` // active time, µs
	Cost     int64 `cbor:"cost,omitempty" json:"cost_usd_micros,omitempty"` // micro-dollars
	Tokens   int64 `cbor:"tokens,omitempty" json:"tokens,omitempty"`
}

// DefaultSteps is limits.steps where the workflow names none.
const DefaultSteps = 1000

// Action is what a role does.
type Action string

// The actions; a role has exactly one.
const (
	ActPrompt   Action = "prompt"
	ActRun      Action = "run"
	ActAsk      Action = "ask"
	ActWorkflow Action = "workflow"
	ActWait     Action = "wait"
	ActSet      Action = "set"
	ActMerge    Action = "merge"
)

// ActsOnFiles reports whether it may change the files of the workspace: commands and agents do.
func (a Action) ActsOnFiles() bool { return a == ActRun || a == ActPrompt }

// ContextMode is how an agent role sees its own past.
type ContextMode string

// conversation goes on where the last visit ended, fresh starts anew each time, task keeps a
// small context per task.
const (
	ContextConversation ContextMode = "conversation"
	ContextFresh        ContextMode = "fresh"
	ContextTask         ContextMode = "task"
)

// Role is a node of the graph. Strings named "template" may hold ${{ }} expressions.
type Role struct {
	Name   string `cbor:"name" json:"name"`
	Action Action `cbor:"action" json:"action"`

	Prompt    string          `cbor:"prompt,omitempty" json:"prompt,omitempty"`             // ActPrompt: the system prompt
	Run       string          `cbor:"run,omitempty" json:"run,omitempty"`                   // ActRun: sh -c, never a template
	Stdin     *Stdin          `cbor:"stdin,omitempty" json:"stdin,omitempty"`               // ActRun: what it reads in place of its turn
	Ask       string          `cbor:"ask,omitempty" json:"ask,omitempty"`                   // ActAsk: template
	Choices   []Choice        `cbor:"choices,omitempty" json:"choices,omitempty"`           // ActAsk
	ChoicesOf string          `cbor:"choices_of,omitempty" json:"choices_of,omitempty"`     // ActAsk: instead of Choices, the expression that gives them
	Form      string          `cbor:"form,omitempty" json:"form,omitempty"`                 // ActAsk: canonical JSON Schema of the fields
	Asking    *Asking         `cbor:"asking,omitempty" json:"asking,omitempty"`             // ActAsk: how long it waits, and for which answers
	Workflow  Link            `cbor:"workflow,omitempty,omitzero" json:"workflow,omitzero"` // ActWorkflow: canonical child definition
	With      []NamedTemplate `cbor:"with,omitempty" json:"with,omitempty"`                 // ActWorkflow: its inputs
	Wait      *Wait           `cbor:"wait,omitempty" json:"wait,omitempty"`                 // ActWait
	Set       []NamedTemplate `cbor:"set,omitempty" json:"set,omitempty"`                   // ActSet
	Merge     *Merge          `cbor:"merge,omitempty" json:"merge,omitempty"`               // ActMerge

	Output          string          `cbor:"output,omitempty" json:"output,omitempty"` // canonical JSON Schema of the declared fields
	Env             []NamedTemplate `cbor:"env,omitempty" json:"env,omitempty"`
	Dir             string          `cbor:"dir,omitempty" json:"dir,omitempty"`                     // relative to the workspace
	Tools           []string        `cbor:"tools,omitempty" json:"tools,omitempty"`                 // sorted
	Approvals       []NamedTemplate `cbor:"approvals,omitempty" json:"approvals,omitempty"`         // tool → auto|ask|deny, sorted
	Sandbox         string          `cbor:"sandbox,omitempty" json:"sandbox,omitempty"`             // of a command and an agent's commands: "", SandboxOff or, of a command, SandboxOn
	Network         string          `cbor:"network,omitempty" json:"network,omitempty"`             // of a command and an agent's commands: "", NetworkAllow or NetworkPackages
	NetworkHosts    []string        `cbor:"network_hosts,omitempty" json:"network_hosts,omitempty"` // endpoints that they reach, sorted; not with NetworkAllow
	Model           []string        `cbor:"model,omitempty" json:"model,omitempty"`                 // tried in order
	Params          string          `cbor:"params,omitempty" json:"params,omitempty"`               // canonical JSON object, decimals as strings
	ParamsTexts     []string        `cbor:"params_texts,omitempty" json:"params_texts,omitempty"`   // JSON pointers of the strings in Params that are no decimals, sorted
	MaxTurns        int             `cbor:"max_turns,omitempty" json:"max_turns,omitempty"`
	Context         ContextMode     `cbor:"context,omitempty" json:"context,omitempty"`
	Task            *TaskSpec       `cbor:"task,omitempty" json:"task,omitempty"` // with ContextTask
	Dynamic         []string        `cbor:"dynamic,omitempty" json:"dynamic,omitempty"`
	Compaction      *CompactionSpec `cbor:"compaction,omitempty" json:"compaction,omitempty"`
	Memory          *MemorySpec     `cbor:"memory,omitempty" json:"memory,omitempty"`
	Timeout         int64           `cbor:"timeout,omitempty" json:"timeout_us,omitempty"`   // µs, of one attempt
	Patience        *int64          `cbor:"patience,omitempty" json:"patience_us,omitempty"` // µs for which a call waits for its provider; missing: the provider's
	Retry           *Retry          `cbor:"retry,omitempty" json:"retry,omitempty"`
	MaxVisits       int             `cbor:"max_visits,omitempty" json:"max_visits,omitempty"`
	RouteAll        bool            `cbor:"route_all,omitempty" json:"route_all,omitempty"`
	ContinueOnError bool            `cbor:"continue_on_error,omitempty" json:"continue_on_error,omitempty"`
	Once            bool            `cbor:"once,omitempty" json:"once,omitempty"`
	Needs           []string        `cbor:"needs,omitempty" json:"needs,omitempty"` // what a worker must have to perform the role, sorted: see Has
	Concurrency     *Concurrency    `cbor:"concurrency,omitempty" json:"concurrency,omitempty"`
	Artifacts       *Artifacts      `cbor:"artifacts,omitempty" json:"artifacts,omitempty"`
	Workspace       *OwnWorkspace   `cbor:"workspace,omitempty" json:"workspace,omitempty"`
	Caching         *Caching        `cbor:"caching,omitempty" json:"caching,omitempty"` // results are reused
	Cache           string          `cbor:"cache,omitempty" json:"cache,omitempty"`     // in definitions of an earlier grammar; without an effect
}

// What a role can say of the sandbox in which commands run. An agent's commands are confined unless it
// says SandboxOff; a command of its own is confined where the run has an agent, unless it says otherwise.
const (
	SandboxOn       = "on"       // always
	SandboxOff      = "off"      // none
	NetworkAllow    = "allow"    // with the network of the machine
	NetworkPackages = "packages" // with the endpoints of PackageHosts
)

// Edge leads from roles to roles. More than one From is a join.
type Edge struct {
	From      []string `cbor:"from" json:"from"`
	To        []string `cbor:"to" json:"to"`
	When      string   `cbor:"when,omitempty" json:"when,omitempty"` // expression
	OnFailure bool     `cbor:"on_failure,omitempty" json:"on_failure,omitempty"`
	Prompt    string   `cbor:"prompt,omitempty" json:"prompt,omitempty"` // template
	// Mentions is what Prompt refers to, sorted: "inputs" or "inputs.package", "output",
	// "outputs.tester", "steps.coder", "item". The message renderer reads it.
	Mentions    []string `cbor:"mentions,omitempty" json:"mentions,omitempty"`
	Limit       int      `cbor:"limit,omitempty" json:"limit,omitempty"`
	OnLimit     string   `cbor:"on_limit,omitempty" json:"on_limit,omitempty"` // role, END, FAIL or SUSPEND; "" is SUSPEND
	ForEach     string   `cbor:"for_each,omitempty" json:"for_each,omitempty"` // expression
	MaxParallel int      `cbor:"max_parallel,omitempty" json:"max_parallel,omitempty"`
}

// Reserved names of the graph.
const (
	NodeStart   = "START"
	NodeEnd     = "END"
	NodeFail    = "FAIL"
	NodeSuspend = "SUSPEND"
)

// NamedTemplate is a name with a template. A value that is only one ${{ }} keeps its type; a
// non-string YAML value is held as canonical JSON under JSON.
type NamedTemplate struct {
	Name  string `cbor:"name" json:"name"`
	Value string `cbor:"value,omitempty" json:"value,omitempty"` // template
	JSON  string `cbor:"json,omitempty" json:"json,omitempty"`   // canonical JSON; strings inside it may be templates
}

// Choice is one answer a person can pick.
type Choice struct {
	Label   string `cbor:"label" json:"label"`
	Value   string `cbor:"value" json:"value"`
	Primary bool   `cbor:"primary,omitempty" json:"primary,omitempty"`
}

// Stdin is what a command reads: the text, or, where File is set, that file.
type Stdin struct {
	Text string `cbor:"text,omitempty" json:"text,omitempty"` // template
	File string `cbor:"file,omitempty" json:"file,omitempty"` // template of a path, relative to where the command works
}

// Artifacts are the files of the workspace that are kept when a visit has ended, well or for good, and the roles of which
// a visit is given those files. One of the two is there.
type Artifacts struct {
	Paths    []string `cbor:"paths,omitempty" json:"paths,omitempty"`         // globs, of which the last one that fits decides
	From     []string `cbor:"from,omitempty" json:"from,omitempty"`           // roles, sorted
	MaxSize  int64    `cbor:"max_size,omitempty" json:"max_size,omitempty"`   // bytes of a file; 0 is ArtifactSize
	MaxTotal int64    `cbor:"max_total,omitempty" json:"max_total,omitempty"` // bytes of all files; 0 is ArtifactTotal
	MaxFiles int      `cbor:"max_files,omitempty" json:"max_files,omitempty"` // files and links; 0 is ArtifactFiles
}

// OwnWorkspace gives each visit of a role a copy of the workspace for itself.
type OwnWorkspace struct {
	Own     bool     `cbor:"own" json:"own"`                               // always true
	Carry   []string `cbor:"carry,omitempty" json:"carry,omitempty"`       // globs of ignored files that come along
	MaxCopy int64    `cbor:"max_copy,omitempty" json:"max_copy,omitempty"` // bytes that are copied where the file system cannot share them; 0 is OwnCopyMax
	Whole   bool     `cbor:"whole,omitempty" json:"whole,omitempty"`       // no copy lies in layers
}

// OwnCopyMax is OwnWorkspace.MaxCopy where the role says nothing else, OwnCopyMost what it can say. OwnFileMax is the length in
// bytes of the longest file whose content is part of the tree of an own copy.
const (
	OwnCopyMax  = 500 << 20
	OwnCopyMost = 100 << 30
	OwnFileMax  = 100 << 20
)

// The status of what a merge role yields.
const (
	MergeOK       = "ok"
	MergeConflict = "conflict"
)

// Merge is what a merge role takes over into the workspace: the own copies of the newest visits of a role.
type Merge struct {
	Of string `cbor:"of" json:"of"`
}

// Keeps reports whether visits of the role keep files of the workspace.
func (r *Role) Keeps() bool { return r.Artifacts != nil && len(r.Artifacts.Paths) > 0 }

// What the artifacts of a visit have at most where the role says nothing else, and what it can say.
const (
	ArtifactSize  = 100 << 20
	ArtifactTotal = 1 << 30
	ArtifactFiles = 10_000

	ArtifactSizeMax  = 10 << 30
	ArtifactTotalMax = 100 << 30
	ArtifactFilesMax = 100_000
)

// Asking is how long a question waits, and for which people.
type Asking struct {
	Timeout   int64      `cbor:"timeout,omitempty" json:"timeout_us,omitempty"`    // µs for an answer; 0 is for ever
	OnTimeout string     `cbor:"on_timeout,omitempty" json:"on_timeout,omitempty"` // the choice that then counts; "" is a failure
	Escalate  [][]string `cbor:"escalate,omitempty" json:"escalate,omitempty"`     // before that: the names that are asked besides, once for each list
	Remind    []int64    `cbor:"remind,omitempty" json:"remind_us,omitempty"`      // µs after it was asked, ascending
	Assignees []string   `cbor:"assignees,omitempty" json:"assignees,omitempty"`   // sorted
}

// RemindAt are the times of the reminders of a question that is asked at now, in unix µs.
func (a *Asking) RemindAt(now int64) []int64 {
	var at []int64
	for _, after := range a.Remind {
		at = append(at, now+after)
	}
	return at
}

// EscalateMax is how often a question can be put to further people.
const EscalateMax = 3

// Wait is what a wait role waits for; exactly one is set.
type Wait struct {
	For    string `cbor:"for,omitempty" json:"for,omitempty"`       // template of a duration: 90s, 1h30m
	Until  string `cbor:"until,omitempty" json:"until,omitempty"`   // template of an RFC 3339 time
	Signal string `cbor:"signal,omitempty" json:"signal,omitempty"` // name of a signal
}

// Retry is how often a failed attempt is repeated. On names classes: timeout, rate_limit,
// server_error, invalid_output, exit_code, exit_75, any; empty is any.
type Retry struct {
	Attempts int      `cbor:"attempts" json:"attempts"`                          // in all, the first included
	Delay    int64    `cbor:"delay,omitempty" json:"delay_us,omitempty"`         // µs before the second attempt; default 1 s
	Factor   string   `cbor:"factor,omitempty" json:"factor,omitempty"`          // decimal; default 2
	MaxDelay int64    `cbor:"max_delay,omitempty" json:"max_delay_us,omitempty"` // µs; default 60 s
	On       []string `cbor:"on,omitempty" json:"on,omitempty"`
	Anew     bool     `cbor:"anew,omitempty" json:"anew,omitempty"` // an agent's further attempt does not go on where the one before ended
}

// CompactionSpec is when a conversation is summarised.
type CompactionSpec struct {
	Watermark int64  `cbor:"watermark,omitempty" json:"watermark,omitempty"` // tokens
	Keep      int    `cbor:"keep,omitempty" json:"keep,omitempty"`           // visits kept whole
	Model     string `cbor:"model,omitempty" json:"model,omitempty"`
}

// Templates are the templates of the role, each under its place: prompt, ask, stdin, stdin.file, wait.for,
// wait.until, env.NAME, set.NAME and with.NAME.
func (r *Role) Templates() []NamedTemplate {
	out := []NamedTemplate{{Name: "prompt", Value: r.Prompt}, {Name: "ask", Value: r.Ask}}
	if r.Stdin != nil {
		out = append(out, NamedTemplate{Name: "stdin", Value: r.Stdin.Text}, NamedTemplate{Name: "stdin.file", Value: r.Stdin.File})
	}
	if r.Wait != nil {
		out = append(out, NamedTemplate{Name: "wait.for", Value: r.Wait.For}, NamedTemplate{Name: "wait.until", Value: r.Wait.Until})
	}
	for _, list := range []struct {
		key string
		of  []NamedTemplate
	}{{"env", r.Env}, {"set", r.Set}, {"with", r.With}} {
		for _, t := range list.of {
			t.Name = list.key + "." + t.Name
			out = append(out, t)
		}
	}
	return out
}

// RoleNamed finds a role.
func (w *Workflow) RoleNamed(name string) (*Role, bool) {
	for i := range w.Roles {
		if w.Roles[i].Name == name {
			return &w.Roles[i], true
		}
	}
	return nil, false
}
