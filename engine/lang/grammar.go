package lang

import (
	"regexp"
	"sync"

	"wf/protocol"
	"wf/protocol/lazy"
)

// The grammar: every key of the language with its shape, what it is for, what holds without it, an example
// and the field of the canonical definition that it becomes. The parser, the editors' JSON Schema and
// the reference page are made from it, and tests hold its examples and defaults against the code.
// Modifiers of a role and defaults share their entries; those of roles are in grammarrole.go.

// A language is the grammar, made when it is first needed.
type language struct {
	workflow, role, edge, input, defaults *shape
	agentKeys                             []key
}

var grammar = sync.OnceValue(func() *language {
	g := &language{agentKeys: agentKeys()}
	common := commonKeys()
	modifiers := append(append([]key{}, g.agentKeys...), common...)
	g.defaults = object(modifiers, "Values for all roles: each key holds for every role that it has an effect on and that does not set it. Variables of env are merged, a role's own value wins. timeout and retry do not reach roles with workflow or ask.")
	g.role = object(append(roleKeys(), modifiers...), "A role: one participant of the workflow, which does exactly one of prompt, run, ask, workflow, wait, set and merge.")
	g.edge = object(edgeKeys(), "An edge: where the run goes when a role has finished, on which condition, how often and with which message. The edges of a role are tried in the order written.")
	g.input = inputShape()
	g.workflow = object(g.fileKeys(), "A workflow: its roles, the edges between them, and what a run takes and yields.")
	return g
})

var (
	roleName   = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	wordName   = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)
	toolName   = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_.:/-]*(/\*)?$`)
	serverName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]{0,31}$`)
	memoryName = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
	endpoint   = lazy.Regexp(`^(packages|[A-Za-z0-9_.-]+:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5})$`)
	personName = lazy.Regexp(`^[^\s\pC$]([^\pC$]{0,98}[^\s\pC$])?$`)
	headerName = lazy.Regexp(`^[A-Za-z0-9-]+$`)
	retryClass = lazy.Regexp(`^(any|timeout|rate_limit|server_error|invalid_output|exit_code|exit_[0-9]{1,3})$`)
)

// maxEntries bounds the roles and the edges of one workflow.
const maxEntries = 10_000

var (
	str      = &shape{kind: aString}
	people   = &shape{kind: aString, free: true}
	person   = matching(personName, "a name without spaces at its ends, of at most 100 characters")
	text     = &shape{kind: aText}
	yesNo    = &shape{kind: aBool}
	posInt   = &shape{kind: anInt, min: 1}
	duration = &shape{kind: aDuration}
	decimals = &shape{kind: aDecimal}
	anything = &shape{kind: anyJSON}
	schemaOf = &shape{kind: aSchema}
	condExpr = &shape{kind: anExpr}
	size     = matching(byteSize, "a size such as 500KB, 100MB or 2GB")
)

func doc(s *shape, d string) *shape {
	c := *s
	c.doc = d
	return &c
}

func enum(values ...string) *shape { return &shape{kind: aString, enum: values} }

func atLeast(min, max int) *shape { return &shape{kind: anInt, min: min, max: max} }

func listOf(elem *shape) *shape { return &shape{kind: aList, elem: elem, nonEmpty: true} }

func oneOrMany(elem *shape) *shape { return either(elem, listOf(elem)) }

func object(keys []key, d string) *shape { return &shape{kind: anObject, keys: keys, doc: d} }

func either(alts ...*shape) *shape { return &shape{kind: oneOf, alts: alts} }

func mapOf(elem *shape) *shape { return &shape{kind: aMap, elem: elem} }

func namedBy(s *shape, re func() *regexp.Regexp, like string) *shape {
	c := *s
	c.pattern, c.like = re, like
	return &c
}

func matching(re func() *regexp.Regexp, like string) *shape { return namedBy(str, re, like) }

func (g *language) fileKeys() []key {
	roles := namedBy(mapOf(g.role), roleName, "letters, digits, _ and -")
	roles.nonEmpty, roles.max = true, maxEntries
	return []key{
		{name: "wf", shape: &shape{kind: anInt, only: 1}, required: true,
			doc: "Version of the language. This program reads version 1.", example: "wf: 1\nroles: {greet: {set: {text: hello}}}", effect: "chooses the grammar by which the file is read"},
		{name: "name", shape: str, unset: "the name of the file without its extension",
			doc: "Name of the workflow. Lists of runs show it.", example: "name: fix-bug", field: "name"},
		{name: "description", shape: people, unset: "none",
			doc: "What the workflow does, for people: wf serve and the page show it.", example: "description: Repair a Go module until its tests pass", field: "description"},
		{name: "on", shape: object(onKeys(), ""), unset: "the workflow is started by wf run or by a client alone",
			doc: "What starts the workflow by itself.", example: `on: {schedule: "@daily"}`, field: "schedule webhook"},
		{name: "inputs", shape: namedBy(mapOf(g.input), wordName, "letters, digits and _"), unset: "a run takes no inputs",
			doc:     "Values that a run is started with: name → type or details. They are given with wf run -i NAME=VALUE and read as ${{ inputs.NAME }}. They do not change during a run.",
			example: "inputs: {package: {type: string, default: ./...}, dry_run: boolean}", field: "inputs"},
		{name: "secrets", shape: &shape{kind: aList, elem: matching(wordName, "the name of an environment variable")}, unset: "none",
			doc:     "Environment variables of wf with secret values. A role gets one by env: {TOKEN: \"${{ secrets.TOKEN }}\"}. Values are passed to that process alone and are replaced by [secret:NAME] in everything that is stored or shown.",
			example: "secrets: [DEPLOY_TOKEN]", field: "secrets"},
		{name: "mcp", shape: namedBy(mapOf(object(serverKeys(), "A server of the Model Context Protocol: a program (command) or an address (url).")), serverName, "letters, digits, _ and -, at most 32"),
			unset: "the servers that the config names",
			doc:   "Servers of the Model Context Protocol, by name. Agents use their tools as mcp:NAME/TOOL.", example: "mcp: {tracker: {url: \"https://tracker.example.com/mcp\"}}", field: "mcp"},
		{name: "notify", shape: &shape{kind: aList, elem: object(sinkKeys(), "A sink: where notifications go. Exactly one of webhook, command and desktop is set."), nonEmpty: true, max: 20}, unset: "the sinks of the config alone are notified",
			doc:     "Where notifications about runs of the workflow go: that one waits for a person, failed, is done, reached a limit. wf trust FILE lets them be sent; the config has the same key for runs of all workflows. Sub-workflows do not notify: what they ask, the run that calls them asks again.",
			example: "notify:\n  - name: ops\n    on: [waiting, failed]\n    webhook: \"https://ops.example.com/wf\"", field: "notify"},
		{name: "limits", shape: object(limitKeys(), ""), unset: "1000 steps, and no other bound",
			doc: "Bounds of a run. A run that reaches one is suspended with exit status 6; wf resume --limit NAME=VALUE goes on.", example: "limits: {steps: 30, duration: 20m, cost_usd: 1.50}", field: "limits"},
		{name: "concurrency", shape: groupShape(true), unset: "a run waits for no other",
			doc:     "Concurrency group of the workflow: of all runs of the store that name the same group at most max act at a time, whatever their workflow is. A run holds its slot from before its first step to its final event, also while it waits. A sub-workflow enters the slot of the run it belongs to.",
			example: "inputs: {env: string}\nconcurrency: {group: \"deploy-${{ inputs.env }}\"}", field: "concurrency"},
		{name: "workspace", shape: object(workspaceKeys(), ""), unset: "files are recorded where an agent of the workflow may write, and the workspace has at most 50,000 files and 500 MB",
			doc:     "Which files of the workspace a run records, so that they can be shown, compared and brought back. Left out are what the .gitignore and .wfignore files leave out that are there when the run starts, .git and .wf; links are not followed. A file that holds a declared secret, or what has the shape of one, is named and not recorded.",
			example: "workspace: {track: true, exclude: [\"data/**\"], max_size: 20MB}", field: "workspace"},
		{name: "defaults", shape: g.defaults, unset: "none", example: "defaults: {model: openai/gpt-5, timeout: 10m}", effect: "merged into the roles; the definition has no field of its own for it"},
		{name: "roles", shape: roles, required: true,
			doc: "The participants: name → role.", example: "roles: {test: {run: go test ./...}}", field: "roles"},
		{name: "edges", shape: &shape{kind: aList, elem: g.edge, max: maxEntries}, unset: "the roles run one after the other, in the order written",
			doc: "The ways between roles. Without an edge from START the run starts with the first role.", example: "edges: [{from: START, to: test}, {from: test, to: END}]", field: "edges"},
		{name: "always", shape: oneOrMany(str), unset: "a run ends when its verdict stands",
			doc:     "Roles that run when the run is done, has failed or was cancelled, before it ends: a lock is released, a database removed, a report written. They are no part of the edges. They run one after the other in this order, each once, whether the others succeeded or not, and see run.verdict. Nothing that they do changes how the run ends; those that fail are shown as cleanup_failed. Together they have 5 minutes and 10 attempts; limits do not hold for them. They cannot ask or wait. A suspended run has not ended.",
			example: "roles:\n  work: {run: make test}\n  clean: {run: make clean}\nalways: clean", field: "always"},
		{name: "outputs", shape: mapOf(anything), unset: "a run yields nothing",
			doc:     "What a run yields: name → template or any value. Steps that may not have happened are read with ?. and ??.",
			example: "outputs: {report: \"${{ steps.test?.text ?? 'nothing ran' }}\"}", field: "outputs"},
	}
}

// workspaceKeys are those of workspace.
func workspaceKeys() []key {
	return []key{
		{name: "track", shape: yesNo, unset: "where an agent of the workflow may write, and the workspace has at most 50,000 files and 500 MB", doc: "Whether the files of the workspace are recorded: before and after each attempt that may write, and after each such tool call.", example: "workspace: {track: true}", field: "workspace.track"},
		{name: "include", shape: listOf(str), unset: "none", doc: "Globs of files that are recorded although a .gitignore or .wfignore leaves them out.", example: "workspace: {include: [dist/**]}", field: "workspace.include"},
		{name: "exclude", shape: listOf(str), unset: "none", doc: "Globs of files that are not recorded.", example: "workspace: {exclude: [\"data/**\"]}", field: "workspace.exclude"},
		{name: "max_size", shape: size, def: "100MB", doc: "The largest file that is recorded, at most 10GB; of a larger one its name and size are.", example: "workspace: {max_size: 1GB}", field: "workspace.max_size"},
	}
}

// groupShape is a concurrency group, of a workflow or a role; the text alone is its name.
func groupShape(workflow bool) *shape {
	field, example := "roles[].concurrency", "concurrency: {group: gpu"
	busy, busyDoc := enum(protocol.BusyQueue, protocol.BusyRefuse), "queue waits for a slot, in the order of asking. refuse fails the attempt with the code group_busy, which retry repeats."
	if workflow {
		field, example = "concurrency", "concurrency: {group: deploy"
		busy, busyDoc = enum(protocol.BusyQueue, protocol.BusyCancelOld, protocol.BusyRefuse), "queue waits for a slot, in the order of asking. cancel_old has older runs of the same workflow in the group cancelled, and starts when they have ended. refuse begins no run: wf run ends with exit status 5 and the code group_busy."
	}
	keys := []key{
		{name: "group", shape: text, required: true, doc: "Name of the group. Expressions see inputs alone; the name is computed once, when the run begins.", example: example + "}", field: field + ".group"},
		{name: "max", shape: posInt, def: "1", doc: "Slots of the group, as this member counts them: it enters where fewer are taken.", example: example + ", max: 2}", field: field + ".max"},
		{name: "on_busy", shape: busy, def: protocol.BusyQueue, doc: busyDoc, example: example + ", on_busy: refuse}", field: field + ".on_busy"},
	}
	if workflow {
		keys = append(keys, key{name: "release_on_suspend", shape: yesNo, def: "false", doc: "Whether a suspended run gives its slot back; wf resume then waits for one again.", example: example + ", release_on_suspend: true}", field: field + ".release_on_suspend"})
	}
	return either(doc(text, "The name of the group."), object(keys, ""))
}

func onKeys() []key {
	cron := doc(str, "minute hour day month weekday, or @daily and the like; in UTC.")
	details := object([]key{
		{name: "cron", shape: str, required: true, doc: "Five fields: minute hour day month weekday; or @hourly, @daily, @weekly, @monthly, @yearly.",
			example: "on: {schedule: {cron: \"30 6 * * mon-fri\"}}", field: "schedule.cron"},
		{name: "timezone", shape: str, def: "UTC", doc: "Time zone in which the expression is read, by its IANA name.",
			example: `on: {schedule: {cron: "@daily", timezone: Europe/Berlin}}`, field: "schedule.timezone"},
		{name: "overlap", shape: enum(protocol.OverlapAllow, protocol.OverlapSkip, protocol.OverlapQueue), def: protocol.OverlapAllow,
			doc:     "What becomes of a firing while a run of the schedule is open, that is, has not ended: allow starts it beside that run, skip leaves it out, queue lets the newest one wait until the run has ended.",
			example: `on: {schedule: {cron: "*/10 * * * *", overlap: skip}}`, field: "schedule.overlap"},
		{name: "catch_up", shape: enum(protocol.CatchUpLast, protocol.CatchUpAll, protocol.CatchUpNone), def: protocol.CatchUpLast,
			doc:     "What becomes of firings that passed while no wf serve ran or the machine slept: last starts the newest of them, all starts each, at most 100, the oldest first, none leaves out what is more than two minutes late.",
			example: `on: {schedule: {cron: "@hourly", catch_up: all}}`, field: "schedule.catch_up"},
	}, "")
	secret := matching(wordName, "the name of a declared secret")
	rotated := listOf(secret)
	rotated.max = mostHookSecrets
	hook := object([]key{
		{name: "kind", shape: enum(protocol.WebhookGitHub, protocol.WebhookStripe, protocol.WebhookHMAC), required: true,
			doc:     "How the sender signs: github (X-Hub-Signature-256), stripe (Stripe-Signature), or hmac: Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature).",
			example: "secrets: [HOOK_KEY]\non: {webhook: {kind: github, secret: HOOK_KEY}}", field: "webhook.kind"},
		{name: "secret", shape: either(secret, rotated), required: true,
			doc:     "Name of the declared secret with which the sender signs. While it is changed: a list of two, the new and the old one; a signature by either holds.",
			example: "secrets: [HOOK_KEY, HOOK_KEY_OLD]\non: {webhook: {kind: hmac, secret: [HOOK_KEY, HOOK_KEY_OLD]}}", field: "webhook.secrets"},
		{name: "if", shape: condExpr, unset: "every event starts a run",
			doc:     "Condition: an expression over event. An event for which it is false or null starts nothing and is answered with 204.",
			example: "secrets: [HOOK_KEY]\non:\n  webhook:\n    kind: github\n    secret: HOOK_KEY\n    if: event.body.ref == 'refs/heads/main'", field: "webhook.if"},
		{name: "with", shape: namedBy(mapOf(anything), wordName, "letters, digits and _"), unset: "a run gets the defaults of its inputs",
			doc:     "Inputs of the run: name → template or value. Expressions see event.body, the JSON or the text that was sent, and event.headers, by names in lower case; what an event lacks is null. An input that would be null is left out.",
			example: "secrets: [HOOK_KEY]\ninputs: {commit: string}\non:\n  webhook:\n    kind: github\n    secret: HOOK_KEY\n    with: {commit: \"${{ event.body.after }}\"}", field: "webhook.with"},
	}, "")
	return []key{
		{name: "schedule", shape: either(cron, details), unset: "no schedule",
			doc:     "When wf serve starts the workflow: a cron expression in UTC, or the details. A workflow with a schedule can have no required inputs.",
			example: `on: {schedule: "0 9 * * mon-fri"}`, field: "schedule.cron"},
		{name: "webhook", shape: hook, unset: "no webhook",
			doc:     "Has wf serve start the workflow when another service sends a signed event to POST /v1/hooks/NAME, NAME being the name of the workflow. Every required input must stand under with.",
			example: "secrets: [HOOK_KEY]\non: {webhook: {kind: github, secret: HOOK_KEY}}", field: "webhook.kind webhook.secrets"},
	}
}

func sinkKeys() []key {
	return []key{
		{name: "name", shape: matching(protocol.SinkName, "letters, digits, _, - and ., at most 64"), required: true, doc: "Name of the sink, which deliveries are kept under.", example: "notify: [{name: ops, desktop: true}]", field: "notify[].name"},
		{name: "on", shape: oneOrMany(enum("waiting", "failed", "done", "limit")), unset: "all four", doc: "Moments to send a notification at: waiting, a person is asked; failed, the run failed or stopped by an error until a person helps; done; limit, a limit was reached.", example: "notify: [{name: me, on: [waiting, failed], desktop: true}]", field: "notify[].on"},
		{name: "webhook", shape: str, unset: "command or desktop is given", doc: "Address that notifications are posted to as JSON (wf.notification/v1), by https. http is for an address of this machine or network that is written in digits or named under network. Redirects are not followed.", example: "notify: [{name: ops, webhook: \"https://ops.example.com/wf\"}]", field: "notify[].webhook"},
		{name: "secret", shape: matching(wordName, "the name of a secret"), unset: "requests are not signed", doc: "Secret that signs what is posted to the webhook, as Standard Webhooks says. Declare it under secrets.", example: "secrets: [OPS_KEY]\nnotify: [{name: ops, webhook: \"https://ops.example.com/wf\", secret: OPS_KEY}]", field: "notify[].secret"},
		{name: "command", shape: str, unset: "webhook or desktop is given", doc: "Command for sh -c, which reads the notification as JSON on its stdin. It is confined as a run role of a workflow with agents is, in the workspace of the run.", example: "notify: [{name: log, command: \"cat >> notifications.jsonl\"}]", field: "notify[].command"},
		{name: "desktop", shape: yesNo, unset: "webhook or command is given", doc: "Shows notifications on the desktop of the machine that delivers them, by notify-send or osascript.", example: "notify: [{name: me, desktop: true}]", field: "notify[].desktop"},
		{name: "include", shape: oneOrMany(enum("title", "question", "outputs")), unset: "no text of the run", doc: "Texts of the run that notifications hold besides its ids, workflow, status and code. Keys and secrets in them are hidden.", example: "notify: [{name: me, desktop: true, include: [title, question]}]", field: "notify[].include"},
		{name: "network", shape: networkShape(), unset: "a command has no network, a webhook reaches public addresses alone", doc: "What the command reaches, as for a role. For a webhook: its own HOST:PORT, where that leads to a private address.", example: "notify:\n  - name: ops\n    command: ./notify.sh\n    network: [packages, \"alerts.example.com:443\"]", field: "notify[].network notify[].network_hosts"},
		{name: "page", shape: str, unset: "notifications hold no link", doc: "Address of the web page of wf, which the link in a notification leads to.", example: "notify: [{name: me, desktop: true, page: \"https://wf.example.com\"}]", field: "notify[].page"},
	}
}

func limitKeys() []key {
	return []key{
		{name: "steps", shape: posInt, def: "1000", doc: "Visits of roles in the run. A sub-workflow is a run with limits of its own.", example: "limits: {steps: 50}", field: "limits.steps"},
		{name: "duration", shape: duration, unset: "no bound", doc: "Active time: the time in which a process drives the run. Waiting for an answer does not count.", example: "limits: {duration: 20m}", field: "limits.duration"},
		{name: "cost_usd", shape: &shape{kind: aMoney}, unset: "no bound", doc: "Cost of all model calls in US dollars, those of sub-workflows included. A model without a known price is refused before the run starts.", example: "limits: {cost_usd: 1.50}", field: "limits.cost"},
		{name: "tokens", shape: posInt, unset: "no bound", doc: "Tokens of all model calls, sent and received, those of sub-workflows included.", example: "limits: {tokens: 1000000}", field: "limits.tokens"},
	}
}

func edgeKeys() []key {
	return []key{
		{name: "from", shape: oneOrMany(str), required: true, doc: "START, a role, or a list of roles. A list is a join: the edge is taken when all of them have finished.", example: "{from: [test, lint], to: report}", field: "edges[].from"},
		{name: "to", shape: oneOrMany(str), required: true, doc: "A role, END, FAIL, or a list of roles, which then run side by side. END ends the run with its outputs, FAIL ends it as failed.", example: "{from: START, to: [test, lint]}", field: "edges[].to"},
		{name: "when", shape: condExpr, unset: "the edge is always taken", doc: "Condition: an expression that is true or false. The edges of a role are tried in order and the first that holds is taken; one without when is the default and comes last.", example: "{from: test, to: END, when: output.exit_code == 0}", field: "edges[].when"},
		{name: "on", shape: enum("failure"), unset: "the edge is for roles that succeeded", doc: "With failure the edge is taken when the role has failed and its retries are used up.", example: "{from: deploy, to: rollback, on: failure}", field: "edges[].on_failure"},
		{name: "prompt", shape: text, unset: "no message", doc: "Message to the role that the edge leads to: what has happened and what is asked of it. An agent also sees the inputs and what happened since its last visit; a command reads the message in the turn on its stdin.", example: "{from: test, to: coder, prompt: \"The tests failed:\\n${{ output.text }}\"}", field: "edges[].prompt"},
		{name: "limit", shape: posInt, unset: "no bound of its own", doc: "How often one branch of the run may take the edge. Every loop needs a limit or a max_visits.", example: "{from: test, to: coder, limit: 3}", field: "edges[].limit"},
		{name: "on_limit", shape: str, def: protocol.NodeSuspend, doc: "Where the run goes instead when the limit of the edge, or max_visits of its target, is reached: a role, END, FAIL or SUSPEND. A suspended run goes on with wf resume.", example: "{from: test, to: coder, limit: 3, on_limit: gate}", field: "edges[].on_limit"},
		{name: "for_each", shape: condExpr, unset: "one visit", doc: "Expression that gives a list: the target is visited once for each element, side by side. The visit reads its element as item and its place, counted from 0, as index.", example: "{from: list, to: test, for_each: output.files}", field: "edges[].for_each"},
		{name: "max_parallel", shape: posInt, unset: "64 visits of a run at once", doc: "How many visits of a for_each run at once.", example: "{from: list, to: test, for_each: output.files, max_parallel: 4}", field: "edges[].max_parallel"},
	}
}

func serverKeys() []key {
	secretEnv := namedBy(mapOf(matching(wordName, "the name of a secret")), headerName, "letters, digits and -")
	return []key{
		{name: "command", shape: listOf(str), unset: "url is given", doc: "Program and arguments. wf starts it once for a visit and speaks to it over stdin and stdout, where each line is a message. Other lines are skipped, and a warning shows the first. One that has ended is started again for the next call.", example: "{command: [node, tools/server.js]}", field: "mcp[].command"},
		{name: "env", shape: mapOf(text), unset: "none", doc: "Environment variables of the program: fixed values, or ${{ secrets.NAME }} alone.", example: "{command: [tracker], env: {TRACKER_TOKEN: \"${{ secrets.TOKEN }}\"}}", field: "mcp[].env"},
		{name: "url", shape: str, unset: "command is given", doc: "Address of the server, http or https. Where the server no longer knows the session (HTTP 404), wf begins another one and makes the call again.", example: "{url: \"https://tracker.example.com/mcp\"}", field: "mcp[].url"},
		{name: "headers_env", shape: secretEnv, unset: "none", doc: "Headers of requests to the url: name of the header → name of the secret that holds its value.", example: "{url: \"https://example.com/mcp\", headers_env: {Authorization: TOKEN}}", field: "mcp[].headers"},
		{name: "sandbox", shape: enum(protocol.SandboxOn, protocol.SandboxOff), unset: "a program is confined if it lies in the workspace or is given a file of it, others are not", doc: "Whether the program is confined like the commands of agents. on confines any program. off starts it as you, once you trusted the files of the workspace that its command names.", example: "{command: [tracker], sandbox: on}", field: "mcp[].sandbox"},
		{name: "network", shape: networkShape(), unset: "no network for a confined program", doc: networkDoc, example: "{command: [node, server.js], network: [packages, \"example.com:443\"]}", field: "mcp[].network mcp[].network_hosts"},
	}
}

func inputShape() *shape {
	types := []string{"string", "integer", "number", "boolean", "array", "object"}
	return &shape{kind: oneOf, null: true, doc: "A type, or the details.", alts: []*shape{
		enum(types...),
		object([]key{
			{name: "type", shape: enum(types...), unset: "any value", doc: "Type of the value.", example: "{type: integer}", field: "inputs[].type"},
			{name: "required", shape: yesNo, def: "false", doc: "Whether a run without the value is refused.", example: "{type: string, required: true}", field: "inputs[].required"},
			{name: "default", shape: anything, unset: "null", doc: "Value where none is given.", example: "{type: string, default: ./...}", field: "inputs[].default"},
			{name: "enum", shape: listOf(anything), unset: "every value of the type", doc: "The values that are allowed.", example: "{type: string, enum: [staging, production], default: staging}", field: "inputs[].enum"},
			{name: "description", shape: people, unset: "none", doc: "What the value is, for people.", example: "{type: string, description: The version to release}", field: "inputs[].description"},
		}, ""),
	}}
}
