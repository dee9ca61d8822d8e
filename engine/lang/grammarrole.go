package lang

import "wf/protocol"

// roleKeys are the actions of a role, of which it has one, and what belongs to single actions.
func roleKeys() []key {
	wait := object([]key{
		{name: "for", shape: text, unset: "until or signal is given", doc: "How long: a duration such as 90s or 1h30m.", example: "wait: {for: 10m}", field: "roles[].wait.for"},
		{name: "until", shape: text, unset: "for or signal is given", doc: "Until when: a time in the form of RFC 3339, with its zone.", example: "wait: {until: \"2030-01-31T09:00:00Z\"}", field: "roles[].wait.until"},
		{name: "signal", shape: str, unset: "for or until is given", doc: "Name of a signal: the run waits for wf answer --signal NAME.", example: "wait: {signal: deployed}", field: "roles[].wait.signal"},
	}, "")
	choice := either(text, object([]key{
		{name: "label", shape: text, unset: "the value", doc: "What the person sees.", example: "ask: Publish?\nchoices: [{label: Publish it, value: publish}]", field: "roles[].choices[].label"},
		{name: "value", shape: text, unset: "the label", doc: "What output.choice is when this is picked.", example: "ask: Publish?\nchoices: [{label: Publish it, value: publish}]", field: "roles[].choices[].value"},
		{name: "primary", shape: yesNo, def: "false", doc: "Marks the choice that is suggested; one choice of a question can have it.", example: "ask: Publish?\nchoices: [{value: publish, primary: true}, {value: drop}]", field: "roles[].choices[].primary"},
	}, ""))
	stdin := object([]key{
		{name: "file", shape: text, required: true, doc: "Path of a file in the workspace, relative to the directory in which the command works. It is opened when an attempt begins.", example: "run: sort\nstdin: {file: names.txt}", field: "roles[].stdin.file"},
	}, "")
	onTimeout := object([]key{
		{name: "escalate", shape: listOf(oneOrMany(person)), required: true, doc: "The people that are asked besides, one after the other: a name, or a list of names, for each time; three times at most. Each has the time of timeout anew.", example: "ask: Deploy?\nchoices: [deploy, stop]\ntimeout: 4h\nassignees: anna\non_timeout: {escalate: [ben, [carla, dave]]}", field: "roles[].asking.escalate"},
		{name: "then", shape: str, def: "fail", doc: "What happens when the last of them did not answer: the value of a choice, which then counts as chosen, or fail.", example: "ask: Deploy?\nchoices: [deploy, stop]\ntimeout: 4h\nassignees: anna\non_timeout: {escalate: [ben], then: stop}", field: "roles[].asking.on_timeout"},
	}, "")
	return []key{
		{name: "prompt", shape: text, action: true, doc: "An agent: a language model with tools. The text is its system prompt. It is the same for all visits of a run, so of all expressions only ${{ inputs.NAME }} can stand in it; what changes is written in the prompt of an edge.", example: "prompt: You fix failing Go tests with the smallest change.", field: "roles[].prompt"},
		{name: "run", shape: text, action: true, doc: "A command for sh -c. No expression can stand in it: values are passed as environment variables by env, and are used in double quotes. Its exit code is output.exit_code and what it writes is output.text.", example: "run: go test ./...", field: "roles[].run"},
		{name: "ask", shape: text, action: true, doc: "A question to a person. The run waits, however long, until wf answer, the chat or the page gives the answer. It is output.text, and output.choice where there are choices.", example: "ask: Publish this?", field: "roles[].ask"},
		{name: "workflow", shape: str, action: true, doc: "A sub-workflow: the path of its file, relative to this one. Each visit is a run of its own; its outputs are the output of the role.", example: "workflow: child.yaml", field: "roles[].workflow"},
		{name: "wait", shape: either(doc(text, "A duration."), wait), action: true, doc: "Waits for a time or a signal. The run is parked meanwhile; no process has to run.", example: "wait: 10m", field: "roles[].wait"},
		{name: "set", shape: mapOf(anything), action: true, doc: "Values, computed from what happened before: name → template or any value. They are the output of the role.", example: "set: {count: 3, ready: true}", field: "roles[].set"},
		{name: "merge", shape: object([]key{
			{name: "of", shape: str, required: true, doc: "The role with workspace: own that made the files: its newest visits that went well are merged, in the order of the items.", example: "merge: {of: coder}", field: "roles[].merge.of"},
		}, ""), action: true, doc: "Takes what visits with workspace: own have changed over into the workspace: a three-way merge against the workspace as it was when they began, of texts by lines. It is the same whichever visit ended first. Its output is status, ok or conflict; conflicts, a list of {path, kind, item, lines}; base and tree, the trees before and after. In a conflict the earlier item stays, and in the workspace what nothing has recorded.", example: "merge: {of: coder}", field: "roles[].merge"},
		{name: "with", shape: mapOf(anything), unset: "the defaults of its inputs", doc: "Inputs of the sub-workflow: name → template or any value.", example: "workflow: child.yaml\nwith: {n: 2}", field: "roles[].with"},
		{name: "stdin", shape: either(text, stdin), unset: "its turn as JSON, which is in the file WF_TURN in any case", doc: "What the command reads from its standard input: a text, to the byte, or a file of the workspace. It has no bound of its own, where a value of env cannot be longer than 128 KiB, and where the turn has at most 64 KiB of what happened before.", example: "run: jq .name\nstdin: \"${{ inputs.package }}\"", field: "roles[].stdin"},
		{name: "choices", shape: either(listOf(choice), text), unset: "any text is an answer", doc: "Answers to pick from: a list, or an expression that gives one, such as ${{ output.choices }}.", example: "ask: Publish this?\nchoices: [{label: Publish it, value: publish}, drop]", field: "roles[].choices roles[].choices_of"},
		{name: "form", shape: schemaOf, unset: "no fields", doc: "Fields that the person fills in, as a JSON Schema of an object. They are fields of output.", example: "ask: Who are you?\nform: {type: object, required: [name], properties: {name: {type: string}}}", field: "roles[].form"},
		{name: "on_timeout", shape: either(str, onTimeout), def: "fail", doc: "What happens when a question has no answer after its timeout: the value of a choice, which then counts as chosen; fail, a failure of class timeout, with retry and edges with on: failure as for any; or escalate, which asks again for the same time, three times at most.", example: "ask: Publish?\nchoices: [publish, drop]\ntimeout: 24h\non_timeout: drop", field: "roles[].asking.on_timeout roles[].asking.escalate"},
		{name: "remind", shape: oneOrMany(duration), unset: "never", doc: "When a question that waits is called to mind: how long after it was asked, once or several times.", example: "ask: Publish?\nremind: [4h, 24h]", field: "roles[].asking.remind"},
		{name: "assignees", shape: oneOrMany(person), unset: "anyone", doc: "The people whose answers count, by the names of their tokens. They bind answers to a server; at the terminal of the store every user can answer.", example: "ask: Publish?\nassignees: [anna, ben]", field: "roles[].asking.assignees"},
		{name: "output", shape: schemaOf, unset: "output has the text alone", doc: "Output contract: the fields that an answer must have, as a JSON Schema of an object. An agent with an answer that does not fit is asked to correct it, twice at most; a command that does not fit has failed. Edges read the fields as output.NAME.", example: "output:\n  type: object\n  required: [status]\n  properties: {status: {enum: [done, stuck]}}", field: "roles[].output"},
		{name: "concurrency", shape: groupShape(false), unset: "an attempt waits for no other", doc: "Concurrency group of the role: of all attempts in the store that name the same group at most max act at a time. Each attempt takes a slot of its own and gives it back when it ends, fails or waits for a person; the other roles of the run go on meanwhile. Within a run or an attempt that holds a slot of the group none is taken.", example: "run: ./train.sh\nconcurrency: {group: gpu, max: 2}", field: "roles[].concurrency"},
		{name: "cache", shape: cacheShape(), def: "false", doc: "Reuses the result of an earlier visit, of any run of the store, where all that it follows from is the same. Of a command that is the role, its turn, its files, its environment and the machine: true takes the whole workspace for inputs and has the command work in a copy of it; the details say what it reads and writes, and it then runs confined, in a copy that has nothing else. Of an agent it is the role, all messages that it is sent, its model with its endpoint, and the files where it has tools for files; of the details it takes scope and for. What cannot be reused is performed as without cache, and wf explain RUN:STEP --cache says why.", example: "run: make dist\ncache: {inputs: [src/**, Makefile], outputs: [dist/**]}", field: "roles[].caching roles[].caching.whole"},
		{name: "description", shape: people, unset: "none", doc: "What the role is for, for people.", example: "description: Runs the tests", effect: "a comment; it is not part of the definition"},
	}
}

// agentKeys apply to agents alone; context and task to sub-workflows too.
func agentKeys() []key {
	tool := either(matching(toolName, "the name of a tool"), &shape{kind: aMap, elem: enum("auto", "ask", "deny"), nonEmpty: true})
	compaction := object([]key{
		{name: "watermark", shape: posInt, unset: "three quarters of the model's context window, 32000 where that is not known", doc: "Number of tokens of a request past which older parts give way to a summary.", example: "compaction: {watermark: 100000}", field: "roles[].compaction.watermark"},
		{name: "keep", shape: posInt, def: "10", doc: "Newest visits that are kept whole, as far as they fit.", example: "compaction: {keep: 4}", field: "roles[].compaction.keep"},
		{name: "model", shape: str, unset: "the model of the role", doc: "Model that writes the summary.", example: "compaction: {model: openai/gpt-5-mini}", field: "roles[].compaction.model"},
	}, "")
	memory := object([]key{
		{name: "scope", shape: matching(memoryName, "role, workflow, user, or the name of a shared memory: letters, digits, ., _ and -"), def: protocol.MemoryRole, doc: "The owner of the memory: that of the role, of the workflow, of the user, or a shared one under a name of its own.", example: "memory: {scope: decisions}", field: "roles[].memory.scope"},
		{name: "recall", shape: yesNo, def: "true", doc: "Whether memories that are close to the message enter by themselves at the start of a visit.", example: "memory: {recall: false}", field: "roles[].memory.no_recall"},
		{name: "top_k", shape: atLeast(1, 50), def: "3", doc: "How many memories enter by themselves, at most.", example: "memory: {top_k: 5}", field: "roles[].memory.top_k"},
		{name: "distance", shape: decimals, unset: "0.3, and 0.6 for the lexical model", doc: "How far those memories may be: from 0, the same text, to 2. Unrelated texts have 1.", example: "memory: {distance: 0.4}", field: "roles[].memory.distance"},
		{name: "embed", shape: str, unset: "the one that the memory was made with; for a new memory lexical/ngrams-1, which needs no server", doc: "Model that measures how close texts are, as provider/name.", example: "memory: {embed: openai/text-embedding-3-small}", field: "roles[].memory.embed"},
	}, "")
	task := object([]key{
		{name: "summaries", shape: atLeast(0, 100), def: "3", doc: "How many summaries of earlier tasks a task starts with.", example: "context: task\ntask: {summaries: 5}", field: "roles[].task.summaries"},
		{name: "summary", shape: enum(string(protocol.SummaryByAgent), string(protocol.SummaryByModel), string(protocol.SummaryNone)), def: string(protocol.SummaryByAgent), doc: "What writes the summary of a task: the agent as it completes the task, one further call of a model, or none.", example: "context: task\ntask: {summary: model}", field: "roles[].task.summary"},
		{name: "words", shape: atLeast(1, 5_000), def: "200", doc: "Words of a summary, at most.", example: "context: task\ntask: {words: 60}", field: "roles[].task.words"},
		{name: "model", shape: str, unset: "the model of the role", doc: "Model that writes goals and summaries.", example: "context: task\ntask: {model: openai/gpt-5-mini}", field: "roles[].task.model"},
	}, "")
	return []key{
		{name: "tools", shape: &shape{kind: aList, elem: tool}, unset: "none", doc: "Tools of the agent: read_file, write_file, edit_file, list_files, search, shell, and mcp:SERVER/TOOL or mcp:SERVER/* of a server. A name alone uses the policy of the tool; {NAME: auto} calls it without a question, {NAME: ask} asks a person for each call, {NAME: deny} refuses it. Calls of a server are asked for unless the role says auto, or a server that you trust says that the tool only reads.",
			example: "tools: [read_file, edit_file, {shell: ask}]", field: "roles[].tools roles[].approvals"},
		{name: "model", shape: oneOrMany(str), unset: "the model of the config; else one for which the environment has a key", doc: "Model as provider/name, such as openai/gpt-5; script/FILE answers from a file. In a list the next one is used when one fails.", example: "model: [anthropic/claude-sonnet-4-5, openai/gpt-5]", field: "roles[].model"},
		{name: "params", shape: mapOf(anything), unset: "those of the provider", doc: "Parameters of the model, such as temperature or max_tokens, sent as they are. What wf writes itself is refused: model, messages, system, tools, stream. On Anthropic's wire, which wants max_tokens, it is 16000 where none is named; a thought with a budget (thinking: {type: enabled, budget_tokens: N}) has its budget on top, any other, such as adaptive thinking, is a part of it. An answer for which reasoning left no token fails and says so.", example: "params: {temperature: 0.2}", field: "roles[].params roles[].params_texts"},
		{name: "max_turns", shape: posInt, def: "20", more: "100 with context: task", doc: "Model calls of one attempt that may ask for tools; after them one more call has to conclude.", example: "max_turns: 40", field: "roles[].max_turns"},
		{name: "patience", shape: &shape{kind: aDuration, zero: true}, unset: "that of the provider in the config, else 10m", doc: "For how long a call waits for its provider while that refuses connections, is busy or silent (HTTP status 408, 425, 429, 5xx), and is asked again and again, after the time that it says with Retry-After if it does. The wait is shown, takes no time of timeout, and ends with the run. 0 asks once. With several models each is asked four times, then whichever may be asked first. Other failures end the attempt at once, an answer that breaks off after three tries.", example: "patience: 30m", field: "roles[].patience"},
		{name: "context", shape: enum("conversation", "task", "fresh"), def: "conversation", doc: "What the agent sees of its earlier visits. conversation: all of it, and each request starts with the bytes of the one before. task: each visit is a task with a small context of its own, summaries of earlier tasks and shared values. fresh: nothing.", example: "context: fresh", field: "roles[].context"},
		{name: "task", shape: task, unset: "the defaults of its keys", doc: "How tasks are kept, with context: task.", example: "context: task\ntask: {summaries: 5, words: 60}", field: "roles[].task"},
		{name: "task_summaries", shape: atLeast(0, 100), def: "3", doc: "Short for task.summaries.", example: "context: task\ntask_summaries: 5", field: "roles[].task.summaries"},
		{name: "dynamic", shape: &shape{kind: aList, elem: str}, unset: "none", doc: "Text that changes from visit to visit and is read at the start of each: date, cwd (the working directory), git (branch and commit), or the path of a file in the workspace.", example: "dynamic: [date, git, AGENTS.md]", field: "roles[].dynamic"},
		{name: "compaction", shape: compaction, unset: "the defaults of its keys", doc: "When a long conversation is summarised.", example: "compaction: {watermark: 100000, keep: 4}", field: "roles[].compaction"},
		{name: "memory", shape: either(yesNo, memory), def: "false", doc: "What the agent remembers beyond a run: true, or the details. It gets tools to remember and recall.", example: "memory: true", field: "roles[].memory"},
	}
}

// commonKeys apply to more than one action; works says to which.
func commonKeys() []key {
	retry := object([]key{
		{name: "attempts", shape: atLeast(1, 100), required: true, doc: "Attempts in all, the first included.", example: "retry: {attempts: 3}", field: "roles[].retry.attempts"},
		{name: "delay", shape: duration, def: "1s", doc: "Pause before the second attempt. Every pause is varied by up to a fifth.", example: "retry: {attempts: 3, delay: 10s}", field: "roles[].retry.delay"},
		{name: "factor", shape: decimals, def: "2", doc: "By which the pause is multiplied after each further attempt; at least 1.", example: "retry: {attempts: 5, delay: 10s, factor: 3}", field: "roles[].retry.factor"},
		{name: "max_delay", shape: duration, def: "60s", doc: "The longest pause.", example: "retry: {attempts: 10, max_delay: 5m}", field: "roles[].retry.max_delay"},
		{name: "anew", shape: yesNo, def: "false", doc: "Whether a further attempt of an agent begins its visit anew, after a failure of the provider or a timeout too. Without it such an attempt goes on where the one before ended: no call runs twice. After an answer that does not fit its output, a further attempt begins anew in any case.", example: "retry: {attempts: 3, anew: true}", field: "roles[].retry.anew"},
		{name: "on", shape: oneOrMany(matching(retryClass, "a class of failures: any, timeout, rate_limit, server_error, invalid_output, exit_code, exit_75")), def: "any", doc: "Classes of failures that are repeated: timeout, rate_limit, server_error, invalid_output, exit_code (every exit code), exit_75 (the code for \"try again later\"), any.", example: "retry: {attempts: 3, on: [timeout, exit_75]}", field: "roles[].retry.on"},
	}, "")
	return []key{
		{name: "timeout", shape: duration, unset: "no bound", doc: "How long one attempt may take. A longer one is ended, and is a failure of class timeout. Of a question: how long it waits for an answer, after which on_timeout says what happens; the timeout of defaults does not reach it.", example: "timeout: 10m", field: "roles[].timeout roles[].asking.timeout"},
		{name: "retry", shape: either(atLeast(1, 100), retry), def: "1", doc: "How often a failed attempt is repeated: the number of attempts in all, or the details.", example: "retry: {attempts: 3, delay: 5s, on: [timeout, exit_code]}", field: "roles[].retry"},
		{name: "max_visits", shape: posInt, unset: "no bound of its own", doc: "How often one branch of the run may enter the role. Beyond it the edge's on_limit says where the run goes.", example: "max_visits: 5", field: "roles[].max_visits"},
		{name: "route", shape: enum("first", "all"), def: "first", doc: "Whether the first edge of the role with a condition that holds is taken, or all of those.", example: "route: all", field: "roles[].route_all"},
		{name: "continue_on_error", shape: yesNo, def: "false", doc: "Treats a failure as data: the edges of the role go on with it. A command that fails has its output.exit_code, in a for_each a failed visit counts as null. A sub-workflow fails also when an error, a limit of its own or a stall suspends it; its run is kept.", example: "continue_on_error: true", field: "roles[].continue_on_error"},
		{name: "once", shape: yesNo, def: "false", doc: "For a command that must not run twice: when it was cut off by a crash it is not run again, a person is asked.", example: "once: true", field: "roles[].once"},
		{name: "needs", shape: needsShape(), unset: "nothing", doc: needsDoc, example: "run: make train\nneeds: [gpu]", field: "roles[].needs"},
		{name: "sandbox", shape: enum(protocol.SandboxOn, protocol.SandboxOff), unset: "commands of agents are confined, and so are the run roles of a workflow that has an agent; those of other workflows are not", doc: "Whether commands are confined: they write the workspace, read the system and have no network and no keys. on confines a run role of any workflow. off confines nothing: it needs trust, and each command of an agent is then asked for.", example: "sandbox: off", field: "roles[].sandbox"},
		{name: "network", shape: networkShape(), unset: "no network for confined commands", doc: networkDoc, example: "network: [packages, \"api.example.com:443\"]", field: "roles[].network roles[].network_hosts"},
		{name: "env", shape: mapOf(text), unset: "none", doc: "Environment variables of commands and tools: name → template. ${{ secrets.NAME }} passes a secret, and can stand here alone.", example: "env: {PACKAGE: \"${{ inputs.package }}\"}", field: "roles[].env"},
		{name: "artifacts", shape: artifactsShape(), unset: "no files are kept", doc: "Files of the workspace that are kept with the run when a visit has ended, whether it went well or failed for good; wf artifact lists and fetches them. A list of globs relative to the workspace, or the details: * stands for any characters but slashes, ** for any directories, and ! leaves out what a glob before it chose; a directory that fits is taken with all below it. Links are kept as links and never followed, and .git and .wf are left out. A file that holds a declared secret, or what has the shape of one, is listed and not kept. A visit with more than the limits fails with the code artifacts_limit.", example: "run: make dist\nartifacts: [dist/**, report.html, \"!dist/**/*.map\"]", field: "roles[].artifacts"},
		{name: "workspace", shape: ownShape(), unset: "the workspace of the run", doc: "own gives each visit a copy of the workspace for itself, so that visits side by side do not meet: without .git, .wf and ignored files, in a directory that no other visit sees. A role with merge takes over what they have changed. All visits of a fan-out begin with the same files.", example: "run: make test\nworkspace: own", field: "roles[].workspace"},
		{name: "dir", shape: str, unset: "the workspace", doc: "Working directory, relative to the workspace. It must lie within it.", example: "dir: services/api", field: "roles[].dir"},
	}
}

const needsDoc = "What a worker must have that performs the role: names such as gpu or docker, at most 16. wf serve --has gpu,docker says what a worker has, WF_HAS=gpu what any command has. A run with such a role is driven only where all that its roles and those of its sub-workflows need is there; until then it waits, and wf ls says for what."

func needsShape() *shape {
	s := oneOrMany(matching(protocol.WhatWorkersHave, "small letters, digits, . _ and -, such as gpu"))
	s.alts[1].max = protocol.NeedsMost
	return s
}

func ownShape() *shape {
	return either(enum("own"), object([]key{
		{name: "own", shape: yesNo, required: true, doc: "Whether each visit has a copy of the workspace for itself.", example: "run: npm test\nworkspace: {own: true, carry: [node_modules]}", field: "roles[].workspace.own"},
		{name: "carry", shape: oneOrMany(str), unset: "none", doc: "Globs of ignored files that come along, such as node_modules; what is changed in them is not merged.", example: "run: npm test\nworkspace: {own: true, carry: [node_modules]}", field: "roles[].workspace.carry"},
		{name: "max_copy", shape: size, def: "500MB", doc: "Bytes that one copy may have where the file system cannot share the blocks of files, at most 100GB. A visit that needs more fails with the code copy_limit.", example: "run: make test\nworkspace: {own: true, max_copy: 2GB}", field: "roles[].workspace.max_copy"},
		{name: "whole", shape: yesNo, def: "false", doc: "Whether each visit of a fan-out has a copy of all files. Without it their copies can be layers over one copy, in which a directory that was there before cannot be renamed by the system call that mv tries first.", example: "run: make test\nworkspace: {own: true, whole: true}", field: "roles[].workspace.whole"},
	}, ""))
}

func artifactsShape() *shape {
	return either(listOf(str), object([]key{
		{name: "paths", shape: listOf(str), unset: "no files are kept", doc: "Globs relative to the workspace.", example: "run: make dist\nartifacts: {paths: [dist/**], max_size: 500MB}", field: "roles[].artifacts.paths"},
		{name: "from", shape: listOf(str), unset: "none", doc: artifactsFromDoc, example: "run: ./deploy \"$WF_ARTIFACTS/build/dist\"\nartifacts: {from: [build]}", field: "roles[].artifacts.from"},
		{name: "max_size", shape: size, def: "100MB", doc: "The largest file, at most 10GB. KB, MB and GB are powers of 1,024 bytes.", example: "run: make dist\nartifacts: {paths: [dist/**], max_size: 500MB}", field: "roles[].artifacts.max_size"},
		{name: "max_total", shape: size, def: "1GB", doc: "All files together, at most 100GB.", example: "run: make dist\nartifacts: {paths: [dist/**], max_total: 4GB}", field: "roles[].artifacts.max_total"},
		{name: "max_files", shape: atLeast(1, protocol.ArtifactFilesMax), def: "10000", doc: "How many files and links there are at most.", example: "run: make dist\nartifacts: {paths: [dist/**], max_files: 50000}", field: "roles[].artifacts.max_files"},
	}, ""))
}

const artifactsFromDoc = "Roles of which the visit is given the files that they keep: before each attempt they are laid out in a directory outside of the workspace, which WF_ARTIFACTS names, read-only and as ROLE/PATH; those of a fan-out as ROLE/INDEX/PATH. Of a role the newest visit on this branch of the run counts, of a sub-workflow all files that its steps keep, of each path the newest. The file tools of an agent read them as $WF_ARTIFACTS/ROLE/PATH. A role that ran and kept nothing has an empty directory; where one has not run on this branch the visit fails with the code artifacts_missing. The directory is removed after the attempt."

const networkDoc = "What confined commands reach of the network. A list of HOST:PORT is reached by a proxy that is set in their environment. packages stands for the hosts from which go, npm, pip and cargo download. allow is the whole network of this machine."

func networkShape() *shape {
	return either(enum(protocol.NetworkAllow, protocol.NetworkPackages), listOf(doc(matching(endpoint, "a host and its port, such as api.example.com:443, or packages"), "HOST:PORT, or packages.")))
}
