package lang

import (
	"regexp"

	"wf/protocol"
	"wf/protocol/lazy"
)

// The grammar: every key of the language, its shape and what it is for. Docs are shown by
// editors. Modifiers of a role and defaults share their entries.

var (
	roleName   = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	wordName   = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)
	toolName   = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_.:/-]*(/\*)?$`)
	serverName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]{0,31}$`)
	memoryName = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
	endpoint   = lazy.Regexp(`^(packages|[A-Za-z0-9_.-]+:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5})$`)
	headerName = lazy.Regexp(`^[A-Za-z0-9-]+$`)
	retryClass = lazy.Regexp(`^(any|timeout|rate_limit|server_error|invalid_output|exit_code|exit_[0-9]{1,3})$`)
)

// maxEntries bounds the roles and the edges of one workflow.
const maxEntries = 10_000

var (
	str    = &shape{kind: aString}
	people = &shape{kind: aString, free: true}
	text   = &shape{kind: aText}
	textL  = &shape{kind: aMap, elem: &shape{kind: anyJSON}}
	yesNo  = &shape{kind: aBool}
	posInt = &shape{kind: anInt, min: 1}
)

func doc(s *shape, d string) *shape {
	c := *s
	c.doc = d
	return &c
}

func enum(d string, values ...string) *shape { return &shape{kind: aString, enum: values, doc: d} }

func listOf(elem *shape, d string) *shape {
	return &shape{kind: aList, elem: elem, doc: d, nonEmpty: true}
}

func oneOrMany(elem *shape, d string) *shape {
	return &shape{kind: oneOf, alts: []*shape{elem, listOf(elem, "")}, doc: d}
}

func object(keys []key, d string) *shape { return &shape{kind: anObject, keys: keys, doc: d} }

func either(d string, alts ...*shape) *shape { return &shape{kind: oneOf, alts: alts, doc: d} }

func matching(re func() *regexp.Regexp, like string) *shape {
	return &shape{kind: aString, pattern: re, like: like}
}

var retryShape = either("How often a failed attempt is repeated: attempts in all, or the details.",
	&shape{kind: anInt, min: 1, max: 100},
	object([]key{
		{"attempts", &shape{kind: anInt, min: 1, max: 100, doc: "Attempts in all, the first included."}, true},
		{"delay", &shape{kind: aDuration, doc: "Before the second attempt; default 1s."}, false},
		{"factor", &shape{kind: aDecimal, doc: "By which the delay grows; default 2."}, false},
		{"max_delay", &shape{kind: aDuration, doc: "Default 60s."}, false},
		{"on", oneOrMany(matching(retryClass, "a class of failures: any, timeout, rate_limit, server_error, invalid_output, exit_code, exit_75"), "Classes of failures; default any."), false},
	}, ""))

var (
	envShape   = &shape{kind: aMap, elem: text, doc: "Environment of commands and tools: name → template. ${{ secrets.NAME }} hands over a secret."}
	toolsShape = &shape{kind: aList, doc: "Tools of an agent: names, mcp:SERVER/TOOL or mcp:SERVER/*, each alone or with: auto|ask|deny. Calls of a server are asked for unless auto is said, or a server that you trust says that the tool only reads.",
		elem: either("", matching(toolName, "the name of a tool"), &shape{kind: aMap, elem: enum("", "auto", "ask", "deny"), nonEmpty: true})}
	compactionShape = object([]key{
		{"watermark", &shape{kind: anInt, min: 1, doc: "Tokens at which the conversation is summarised."}, false},
		{"keep", &shape{kind: anInt, min: 1, doc: "Visits kept whole; default 10."}, false},
		{"model", doc(str, "Model that writes the summary."), false},
	}, "When a conversation is summarised.")
	memoryShape = either("What the agent remembers beyond a conversation: true, or the details.", yesNo, object([]key{
		{"scope", doc(matching(memoryName, "role, workflow, user, or the name of a shared memory: letters, digits, ., _ and -"), "Whose memory it is: role (default), workflow, user, or one shared under a name."), false},
		{"recall", doc(yesNo, "Whether what is close enters by itself at the start of a visit; default true."), false},
		{"top_k", &shape{kind: anInt, min: 1, max: 50, doc: "How many memories enter by themselves at most; default 3."}, false},
		{"distance", &shape{kind: aDecimal, doc: "How far they may be, from 0 to 2; default 0.3, and 0.6 for the lexical model."}, false},
		{"embed", doc(str, "Embedding model: provider/name; default lexical/ngrams-1, which needs no server."), false},
	}, ""))
	taskShape = object([]key{
		{"summaries", &shape{kind: anInt, max: 100, doc: "Summaries of earlier tasks that a task begins with; default 3."}, false},
		{"summary", enum("Who writes the summary of a task: the agent as it completes it (default), a further model call, or nobody.",
			string(protocol.SummaryByAgent), string(protocol.SummaryByModel), string(protocol.SummaryNone)), false},
		{"words", &shape{kind: anInt, min: 1, max: 5_000, doc: "Of a summary, at most; default 200."}, false},
		{"model", doc(str, "Model that writes goals and summaries; default the role's."), false},
	}, "How tasks are kept, with context: task.")
)

// agentKeys apply to agents alone.
var agentKeys = []key{
	{"tools", toolsShape, false},
	{"model", oneOrMany(str, "Model, or models tried in order: provider/name, script/file."), false},
	{"params", &shape{kind: aMap, elem: &shape{kind: anyJSON}, doc: "Parameters of the model, for example temperature."}, false},
	{"max_turns", doc(posInt, "Model calls of one visit; default 20."), false},
	{"context", enum("How the agent sees its past: the whole conversation, one small task, or nothing.", "conversation", "task", "fresh"), false},
	{"task", taskShape, false},
	{"task_summaries", &shape{kind: anInt, max: 100, doc: "Short for task.summaries."}, false},
	{"dynamic", &shape{kind: aList, elem: str, doc: "Volatile text recorded with each visit: date, cwd, git, AGENTS.md."}, false},
	{"compaction", compactionShape, false},
	{"memory", memoryShape, false},
}

var networkShape = either("What confined commands reach of the network: nothing unless it is said. A list of HOST:PORT is reached over TLS or another protocol in a tunnel of an HTTP proxy, which is set in the environment; packages stands for the hosts from which go, npm, pip and cargo download. allow is all of this machine's network.",
	enum("", protocol.NetworkAllow, protocol.NetworkPackages), listOf(doc(matching(endpoint, "a host and its port, such as api.example.com:443, or packages"), "HOST:PORT, or packages."), ""))

// commonKeys apply to more than one action; works says to which.
var commonKeys = []key{
	{"timeout", &shape{kind: aDuration, doc: "Of one attempt. A timeout is a failure of class timeout."}, false},
	{"retry", retryShape, false},
	{"max_visits", doc(posInt, "Entries of the role along one branch."), false},
	{"route", enum("Whether the first edge that holds is taken, or all of them.", "first", "all"), false},
	{"continue_on_error", doc(yesNo, "A failure is data: a command's exit code, null for an item. A sub-workflow fails also when an error, its own limits or a stall suspend it; its run stays to be looked at."), false},
	{"once", doc(yesNo, "A command that was cut off is not run again; a person is asked."), false},
	{"sandbox", enum("Whether commands are confined. An agent's are, and so is the command of a run role in a workflow that has an agent; on confines one in any workflow. off confines nothing: an agent's commands are then asked for, each of them.", protocol.SandboxOn, protocol.SandboxOff), false},
	{"network", networkShape, false},
	{"env", envShape, false},
	{"dir", doc(str, "Working directory, relative to the workspace."), false},
}

var defaultsShape = object(append(append([]key{}, agentKeys...), commonKeys...), "Modifiers for every role they apply to; a role's own win.")

var choiceShape = either("", text, object([]key{
	{"label", doc(text, "What the person sees; default the value."), false},
	{"value", doc(text, "What output.choice is; default the label."), false},
	{"primary", doc(yesNo, "Shown first."), false},
}, ""))

var roleKeys = []key{
	{"prompt", doc(text, "Agent: its system prompt. Stable: only ${{ inputs.… }} may stand in it."), false},
	{"run", doc(text, "Command for sh -c. Values reach it by env alone."), false},
	{"ask", doc(text, "Question to a person."), false},
	{"workflow", doc(str, "Sub-workflow: path relative to this file."), false},
	{"wait", either("Waits for a time or a signal.", doc(text, "A duration."), object([]key{
		{"for", doc(text, "A duration: 90s, 1h30m."), false},
		{"until", doc(text, "A time: 2026-01-31T09:00:00Z."), false},
		{"signal", doc(str, "A name for wf answer."), false},
	}, "")), false},
	{"set", &shape{kind: aMap, elem: &shape{kind: anyJSON}, doc: "Values: name → template or any value."}, false},
	{"with", doc(textL, "Inputs of the sub-workflow."), false},
	{"choices", either("Answers to pick from: a list, or an expression that gives one, such as ${{ output.choices }}.", listOf(choiceShape, ""), text), false},
	{"form", &shape{kind: aSchema, doc: "JSON Schema of the fields a person fills in."}, false},
	{"output", &shape{kind: aSchema, doc: "JSON Schema of the declared fields."}, false},
	{"description", doc(people, "For people."), false},
}

var roleShape = object(append(append(append([]key{}, roleKeys...), agentKeys...), commonKeys...), "A role: exactly one of prompt, run, ask, workflow, wait, set.")

var edgeShape = object([]key{
	{"from", oneOrMany(str, "START or roles; several are a join."), true},
	{"to", oneOrMany(str, "Roles, END or FAIL; several run side by side."), true},
	{"when", &shape{kind: anExpr, doc: "Condition; the first edge that holds is taken."}, false},
	{"on", enum("failure: taken when the role failed for good.", "failure"), false},
	{"prompt", doc(text, "What is said when it hands over."), false},
	{"limit", doc(posInt, "How often one branch takes the edge."), false},
	{"on_limit", doc(str, "Where to go beyond a bound: a role, END, FAIL or SUSPEND (default)."), false},
	{"for_each", &shape{kind: anExpr, doc: "A list: one visit per item."}, false},
	{"max_parallel", doc(posInt, "Visits of a fan-out at once."), false},
}, "A way from roles to roles.")

var serverShape = object([]key{
	{"command", listOf(str, "Program and arguments; spoken to over stdin and stdout."), false},
	{"env", &shape{kind: aMap, elem: text, doc: "Environment of the program: fixed values, or ${{ secrets.NAME }} alone."}, false},
	{"url", doc(str, "Instead of a program: where the server is."), false},
	{"headers_env", &shape{kind: aMap, elem: matching(wordName, "the name of a secret"), pattern: headerName, like: "letters, digits and -", doc: "Headers of requests: name → secret that holds the value."}, false},
	{"sandbox", enum("Whether the program is confined as commands are. One that lies in the workspace, or is given something that does, is; on confines any. off starts it as you, once you trusted the files of the workspace that its command names, as they are.", protocol.SandboxOn, protocol.SandboxOff), false},
	{"network", networkShape, false},
}, "A server of the Model Context Protocol: a command or a url.")

var inputTypes = []string{"string", "integer", "number", "boolean", "array", "object"}

var inputShape = &shape{kind: oneOf, null: true, doc: "A type, or the details.", alts: []*shape{
	enum("", inputTypes...),
	object([]key{
		{"type", enum("Type of the value; any without.", inputTypes...), false},
		{"required", doc(yesNo, "A run cannot start without it."), false},
		{"default", &shape{kind: anyJSON, doc: "Value where none is given."}, false},
		{"enum", listOf(&shape{kind: anyJSON}, "The values allowed."), false},
		{"description", doc(people, "For people."), false},
	}, ""),
}}

var scheduleShape = either("When the workflow is started by wf serve: a cron expression, or the details.",
	doc(str, "minute hour day month weekday, or @daily and the like; in UTC."),
	object([]key{
		{"cron", doc(str, "minute hour day month weekday, or @daily and the like."), true},
		{"timezone", doc(str, "Such as Europe/Berlin; default UTC."), false},
	}, ""))

var workflowShape = object([]key{
	{"wf", &shape{kind: anInt, only: 1, doc: "Version of the language."}, true},
	{"name", doc(str, "Name of the workflow; default the file's."), false},
	{"description", doc(people, "For people."), false},
	{"on", object([]key{{"schedule", scheduleShape, false}}, "What starts the workflow by itself."), false},
	{"inputs", &shape{kind: aMap, elem: inputShape, pattern: wordName, like: "letters, digits and _", doc: "What a run is started with."}, false},
	{"secrets", &shape{kind: aList, elem: matching(wordName, "the name of an environment variable"), doc: "Environment values that roles may get by env; never stored or shown."}, false},
	{"mcp", &shape{kind: aMap, elem: serverShape, pattern: serverName, like: "letters, digits, _ and -, at most 32", doc: "Servers that offer tools to agents, as mcp:NAME/TOOL."}, false},
	{"limits", object([]key{
		{"steps", doc(posInt, "Visits of the run; default 1000. A sub-workflow is a run with limits of its own."), false},
		{"duration", &shape{kind: aDuration, doc: "Active time."}, false},
		{"cost_usd", &shape{kind: aMoney, doc: "Dollars, those of sub-workflows included."}, false},
		{"tokens", doc(posInt, "Of all model calls, those of sub-workflows included."), false},
	}, "Bounds of a run; a breach suspends it."), false},
	{"defaults", defaultsShape, false},
	{"roles", &shape{kind: aMap, elem: roleShape, nonEmpty: true, max: maxEntries, pattern: roleName, like: "letters, digits, _ and -", doc: "Who acts."}, true},
	{"edges", &shape{kind: aList, elem: edgeShape, max: maxEntries, doc: "Left out: the roles run in the order written."}, false},
	{"outputs", &shape{kind: aMap, elem: &shape{kind: anyJSON}, doc: "What the run yields: name → template or any value."}, false},
}, "A workflow of LLM roles, commands and people.")
