// Written by go run ./hub/server/schemas (make update) from the Go types: change those.

/** wf.accepted/v1: what was asked for is durable. */
export interface Accepted {
  schema: "wf.accepted/v1";
  id: string; // Of the run; of the new one for a fork.
  step: string | null; // The visit that was answered, else null.
  seq?: number; // Of a fork: its newest event, as it was made.
  warnings?: Array<string>; // What the user of a fork should know, such as that its workspace is not as the step found it.
}

/** What a role does. */
export type Action = "prompt" | "run" | "ask" | "workflow" | "wait" | "set" | "merge";

/** A process that drives runs. */
export interface Agent {
  id: string;
  name: string;
  version: string;
  caps: Array<string> | null; // Workflows that it can start, sorted.
  runs: number; // That it has.
  since: string;
  last_seen: string;
  connected: boolean; // Its last word holds still.
  capacity: number; // How many runs it drives at once for jobs to be given to it, 0 for any number; Busy is how many it drives.
  busy: number;
  draining: boolean; // Set by Drain: it gets no jobs.
}

/** wf.agents/v1: the workers by name, those that are away too. */
export interface Agents {
  schema: "wf.agents/v1";
  items: Array<Agent>;
}

/** What became of a schedule or a webhook that was served. */
export interface Alarm {
  kind: string; // Schedule or webhook.
  workflow: string;
  file: string;
  state: string; // Stopped, served (again) or removed.
  at: string; // RFC 3339, UTC.
  problem?: string; // Of stopped: what keeps it from being served; of removed: what was removed.
  fix?: string; // Of stopped: what to do.
}

/** A reply to a waiting visit. */
export interface AnswerRequest {
  step?: string; // gate#1; may be left out where only one visit waits.
  signal?: string; // Instead of step: what waits for this signal.
  text?: string;
  choice?: string; // Value or label.
  fields?: Record<string, unknown>; // Of a form, an object.
  shown?: string; // That of the Waiting that was shown: a visit that asks for another tool call by now gives not_waiting (409). Left out, the answer is for whatever waits.
}

/** The first line of what an archive holds, before lines with the CIDs of its blocks: wf.contents/v1. */
export interface ArchiveContents {
  schema: "wf.contents/v1";
  runs: Array<ArchivedRun>; // First the one that was asked for, then those of its sub-workflows.
}

/** protocol.ArchivedRun. */
export interface ArchivedRun {
  run: string;
  head: CID;
  seq: number; // Of the head.
  files?: CID; // Of the FilesKept of the run; left out where its files are, or none were recorded.
}

/** A file that a step keeps, or that it left out. */
export interface Artifact {
  step: string;
  path: string;
  mode: string; // File, exec, link or omitted.
  size: number; // Bytes.
  cid?: string; // Of its content.
  why?: string; // It was omitted: name, special, size, secret, unstable or denied.
}

/** The files that a run, or a step of it, keeps: wf.artifacts/v1. */
export interface Artifacts {
  schema: "wf.artifacts/v1";
  run: string;
  artifacts: Array<Artifact>;
  next?: string; // Give it as after to read on; left out at the end.
}

/** One try of a visit. */
export interface Attempt {
  attempt: number; // From 1.
  started: Time;
  error: Failure | null;
  retry_at?: Time;
  usage: Usage;
}

/** The CIDs of blocks. */
export interface BlocksRequest {
  blocks: Array<CID>; // 1 to 10,000.
}

/** A limit along the branch, with what was counted before the visit. */
export interface Bound {
  name: string;
  count: number;
  max: number;
  reached: boolean;
}

/** CID names a block by its hash: base32, in lower case. */
export type CID = string;

/** How much of each prompt of a run the provider had seen before: wf.cache/v1. */
export interface Cache {
  schema: "wf.cache/v1";
  run: string;
  min_prefix: number; // The least ratio of all calls but those after a compaction.
  compactions?: number; // Prompts that a compaction broke on purpose.
  min_compacted?: number; // The least ratio of these.
  hit: number | null; // Cached of input over all calls; null where nothing was reported.
  items: Array<CacheCall>;
}

/** One model call. */
export interface CacheCall {
  step: string;
  call: number; // Of the visit, from 1.
  kind?: string; // What the call was for; "" is a turn of the visit.
  model: string;
  bytes: number; // Of the visit's first request, P_k.
  before: string; // The visit whose prompt it goes on from, "" for none.
  of: number; // Bytes of that prompt.
  shared: number; // Of these: what P_k begins with.
  ratio: number; // Shared / of; 1 where there is none.
  differs_at: number | null; // First byte that differs, null for none.
  part: string; // Tools, system, history, compaction: what it lies in.
  input: number | null; // Tokens, as these.
  cached: number | null;
  written: number | null;
  miss: string; // Why less was read than could be; "" for no miss or no report.
}

/** A tool call of an assistant message; Arguments is raw JSON as written by the model. */
export interface CallMessage {
  id: string;
  name: string;
  arguments: string;
}

/** Cancel says why a run is cancelled. */
export interface CancelRequest {
  reason?: string;
}

/** The step with which the way to FAIL began. From the steps behind it nothing else could be reached. */
export interface Cause {
  step: string;
  failed: boolean; // False: its output, or a bound, chose the way to FAIL.
  error?: Failure; // Of a step that failed.
  road: Array<string>; // The steps between it and FAIL.
  way?: string; // The first step from which nothing but FAIL could be reached; left out where there is none.
}

/** The notification that a run was started by. */
export interface CausedBy {
  run: string; // That it was about.
  seq: number; // Of the event.
  depth: number; // 1 where that run was not caused by one itself.
}

/** Changes of memories that are there. */
export interface ChangeMemoriesRequest {
  scope?: string;
  changes?: Array<MemoryChange>;
}

/** Checked counts what was read. */
export interface Checked {
  heads: number;
  events: number;
  records: number;
  blocks: number;
  bytes: number; // Of blocks, unpacked.
  moves: number; // Reflog lines.
}

/** One answer a person can pick. */
export interface Choice {
  label: string;
  value: string;
  primary?: boolean;
}

/** An always role that failed or was skipped. It changes nothing of what the run concluded. */
export interface CleanupFailed {
  role: string;
  step?: string; // "" where it did not begin.
  code: string;
  message: string;
}

/** wf.code/v1: what a browser is opened with, once. */
export interface Code {
  schema: "wf.code/v1";
  code: string;
  expires: Time;
  urls: Array<string>; // Addresses to open, with the code in the fragment.
}

/** What a command was given. */
export interface Command {
  run: string;
  dir: string;
  env: Array<NamedTemplate> | null;
  stdin?: Stdin; // What it reads in place of its turn.
  edge_prompt: string;
  item?: unknown; // Of a fan-out: the value of the item.
}

/** What a summary took the place of. */
export type CompactScope = "conversation" | "visit";

/** What a visit replaced by a summary. The originals stay: replay and the records have them. */
export interface Compaction {
  scope: CompactScope;
  record: CID | null; // The Compaction of a conversation.
  covers?: number; // Conversation: visits up to this one are in the summary.
  prior?: number; // Those after it up to this one stay whole.
  replies?: number; // Visit: oldest replies, with their results, in the summary.
  summary: string;
  model: string; // That wrote it; "" for an extract.
  error?: string;
  tokens_before: number;
  tokens_after: number; // Estimated.
}

/** What the model calls of a run used: wf.cost/v1. */
export interface Cost {
  schema: "wf.cost/v1";
  run: string;
  by: "role" | "step" | "task" | "model" | "kind"; // What it is summed by.
  prices: string; // Date of the table.
  items: Array<CostRow>;
  total: CostRow;
  reused?: number; // Steps that took an earlier result: they cost nothing, and have no calls.
}

/** A sum over calls, in tokens and dollars. */
export interface CostRow {
  name?: string;
  goal?: string; // Of a task.
  calls: number;
  unreported: number; // Calls of which the provider reported no tokens.
  input: number;
  cached: number;
  cache_write_5m: number;
  cache_write_1h: number;
  output: number;
  cost_usd: number | null; // Null where a price is unknown.
  known_usd: number; // Of the calls whose price is known.
}

/** A workflow that is not in the store yet, with the files that it names. */
export interface Definition {
  file: string; // Absolute path, as it is recorded with the run.
  source: string; // Its YAML.
  files?: Record<string, string>; // The texts of its sub-workflows, by absolute path.
}

/** What was deleted, or would be: wf.deleted/v1. */
export interface Deleted {
  schema: "wf.deleted/v1";
  dry_run: boolean;
  id: string;
  runs: Array<string>; // With those of its sub-workflows.
  by: string;
  at: Time;
  why: string;
  held: Array<Holder>; // What still has parts of the run, which are not removed from it.
}

/** What is left of a run that was deleted. Nothing of what it was about is kept. */
export interface Deletion {
  run: string;
  seq: number; // Of its newest event.
  by: string;
  at: Time;
  why: string;
}

/** The runs that were deleted: wf.deletions/v1. */
export interface Deletions {
  schema: "wf.deletions/v1";
  items: Array<Deletion>; // The last one first.
  next?: string; // Part.After of those behind these; "" at the end.
}

/** VisitDiff compares the outputs of two visits of a role: wf.diff/v1. */
export interface Diff {
  schema: "wf.diff/v1";
  run: string;
  step: string;
  previous: string | null; // Null for the first visit: all of it is new.
  equal: boolean;
  added: number; // Lines.
  removed: number;
  changed: Array<string>; // What differs, in words.
  unified: string; // Of the texts.
}

/** An error on the wire: wf.error/v1. */
export interface Error {
  schema: "wf.error/v1";
  code: "agent_connected" | "agent_moved" | "agent_taken" | "agent_unavailable" | "ambiguous_ref" | "bad_answer" | "bad_cursor" | "bad_request" | "body_gone" | "cache_miss" | "caused_too_deep" | "copy_gone" | "corrupt" | "disk_full" | "embedding_answer" | "embedding_dimension" | "embedding_model" | "embedding_table" | "fenced" | "file_exists" | "forbidden" | "foreign_run" | "future_cursor" | "gap" | "group_busy" | "head_moved" | "internal" | "invalid_answer" | "invalid_block" | "invalid_config" | "invalid_inputs" | "invalid_workflow" | "job_begun" | "job_dead" | "lease_lost" | "left_behind" | "mcp_untrusted" | "memory_refused" | "method_not_allowed" | "misdirected" | "model_unavailable" | "no_worker" | "not_found" | "not_running" | "not_waiting" | "pointer_swapped" | "queue_closed" | "rate_limited" | "request_reused" | "rolled_back" | "run_deleted" | "run_final" | "run_live" | "run_not_final" | "sandbox_unavailable" | "sealed" | "serve_stopped" | "shutting_down" | "store_busy" | "store_held" | "store_is_database" | "store_newer" | "store_read_only" | "store_unreachable" | "store_unreadable" | "too_large" | "too_slow" | "unauthorized" | "unknown_artifact" | "unknown_job" | "unknown_price" | "unknown_semantics" | "unknown_session" | "unknown_step" | "unsupported_media_type" | "untrusted" | "upgrade_required" | "usage" | "verify_failed" | "waiting" | "worker_lacks" | "workspace_unseen"; // Stable, snake_case. Codes may be added: treat one that is not known by its status.
  message: string; // What, where, why.
  fix: string; // What to do.
  hint: string; // What commands of wf show in its place, or "".
  headSeq?: number; // Of future_cursor: the newest event.
}

/** Why a step was entered: wf.explain/v1. */
export interface Explanation {
  schema: "wf.explain/v1";
  run: string;
  step: string;
  edge: number; // Index in the definition.
  via: Via;
  edge_prompt: string;
  parents: Array<CID>;
  tried: Array<Tried>;
  bounds: Array<Bound>;
  cache?: Reuse; // Of a role with cache.
}

/** ErrorInfo says why a visit failed, in a record. It holds nothing volatile: no duration, no request id, no host. */
export interface Failure {
  code: string; // For example exit_code, timeout, output_validation.
  phase: string; // Run, model, tool, output_validation, expression, ….
  message: string; // For people.
}

/** How many items of a fan-out have each state, in the whole run. */
export interface FanTally {
  id: string; // Of the visit: check#1 of check#1[7].
  items: number; // Those that have not begun included.
  states: Record<string, number>; // Items that began, by state.
  exits?: Record<string, number>; // How many items of state nonzero exited with each code.
  began: number; // The step_started of the first item.
  ended?: number; // The step_completed that came last.
}

/** One fault. Where is run/seq/field, as far as each is known; for what is not part of a run it is a place in the store or archive. */
export interface Finding {
  kind: string;
  where: string;
  expected: string;
  actual: string;
  fix: string;
}

/** A run at the other end of a fork, and the last event that both share. */
export interface ForkPoint {
  run: string;
  seq: number;
}

/** Fork says where a fork begins, and what differs in it. */
export interface ForkRequest {
  step?: string; // Without one it is where the run is: behind the step that ended last.
  after?: boolean; // Keep the step, go on behind it.
  note?: string;
  models?: Record<string, Models>; // Models by role, "" is every role, from here on; none leaves them.
  limits?: Record<string, number | string>; // Limits by name, as in Resume.
  with?: Definition; // Another definition to go on under. Over HTTP it needs scope admin and is not trusted: a fork under one that runs commands or reaches the network is made with hold alone, and does not go on before wf store adopt.
  hold?: boolean; // Make the fork, and do not go on with it.
}

/** What a visit left the workspace in; null outside of git. */
export interface GitState {
  git_head: string;
  dirty?: boolean; // Whether files differed from the commit. Without it that is unknown: only older versions asked git, which runs the programs that a repository names.
}

/** wf.health/v1: the server answers. */
export interface Health {
  schema: "wf.health/v1";
  ok: true;
}

/** A place in a run where words of a search occur. */
export interface Hit {
  step: string; // Of a system prompt its role; empty for what is of the run.
  kind: string; // Title, input, prompt, answer, error or question.
  text: string; // An excerpt: one line of at most 200 characters.
  run?: string; // Of a sub-workflow, whose step it is.
}

/** Holder has parts of a run that was deleted. */
export interface Holder {
  what: string; // Fork, or backup.
  name: string; // Of the run, or the directory.
  bytes: number; // Of the blocks that a fork shares with the run; of the whole backup.
}

/** Why no process drives a run that could go on: its process was killed or could not write, none has driven it yet, or it was answered while none was there. POST …/resume goes on. */
export type Idle = "interrupted" | "not_started" | "unattended" | "answered";

/** What an archive brought: wf.import/v1. */
export interface Imported {
  schema: "wf.import/v1";
  runs: Array<string>; // Those that were exported.
  roots: Array<string>; // CIDs.
  blocks: number;
  bytes: number;
  children?: Array<string>; // The runs of sub-workflows.
  forwarded?: Array<string>; // Those of both that were there, and went on.
  held?: Array<string>; // Those of both that were there with all that came in.
}

/** wf.info/v1: what is at the other end, and what the asker may do there. */
export interface Info {
  schema: "wf.info/v1";
  kind: "agent" | "hub"; // Agent, or hub.
  name: string;
  version: string;
  scopes: Array<Scope>;
}

/** A job with its state. */
export interface Job {
  id: string;
  workflow: string;
  priority: number; // Larger ones first; 0 is usual.
  state: JobState;
  since: string; // Of the state.
  submitted: string; // When it came first.
  attempts: number; // Leases so far.
  agent: string; // That holds the lease, or held the last one.
  epoch: number; // Of that lease, 0 before the first.
  run?: string; // What it became, when done.
  why?: string; // Code of what ended the last lease.
  reason?: string; // Why a queued job is not leased now, as the hub sees it; a queue leaves it empty.
}

/** Where a job stands. */
export type JobState = "queued" | "leased" | "done" | "dead";

/** Those of BlockNames that a store does not have: wf.lacking/v1. */
export interface LackedBlocks {
  schema: "wf.lacking/v1";
  blocks: Array<CID>;
}

/** wf.login/v1: a login. Its token is sent as those of programs are. */
export interface Login {
  schema: "wf.login/v1";
  token: string;
  expires: Time;
  scopes: Array<Scope>;
}

/** LoginRequest asks for a login. */
export interface LoginRequest {
  code: string; // Of an address that wf printed, once.
}

/** What the workspace held once. */
export interface Look {
  seq: number; // Of its event.
  time: Time;
  step: string; // "" at the start of the run.
  attempt: number; // From 1; 0 at the start of the run.
  phase: string; // Start, before, call or after.
  call?: string; // The tool call that had ended.
  tool?: string; // Of the call.
  tree?: string; // Its CID.
  failed?: string; // Why there is none.
  by: Array<string>; // Which visits, and "outside", may have changed what differs from the look before; "N others" beyond 100 of them.
}

/** What a run recorded of the files of its workspace: wf.looks/v1. */
export interface Looks {
  schema: "wf.looks/v1";
  run: string;
  workspace: string;
  recorded: boolean;
  why?: string; // They are not.
  looks: Array<Look>; // In order.
  own?: Array<OwnVisit>; // The visits with copies of the workspace for themselves, and the merges of those; in the order in which they began.
  next?: string; // Give it as after to read on; left out at the end.
}

/** What a memory holds: wf.memories/v1. */
export interface Memories {
  items: Array<MemoryItem>;
  model?: string; // That embeds them.
  next?: string; // Part.After of the memories behind these; "" at the end.
  schema: "wf.memories/v1";
  scope: string; // In full.
}

/** wf.memory_changed/v1. */
export interface MemoriesChanged {
  head: string;
  ids: Array<number>;
  schema: "wf.memory_changed/v1";
  scope: string;
  seq: number;
}

/** MemoryChange changes one memory; what is left out stays. */
export interface MemoryChange {
  id: number;
  tags?: Array<string>;
  pinned?: boolean;
  place?: Record<string, unknown>;
  remove?: boolean; // It is no longer found; its history stays.
}

/** One memory. */
export interface MemoryItem {
  id: number; // The seq of the event that remembered it.
  content: string; // At most protocol.MemoryMax bytes.
  sum?: string; // sha256 of the content in hex, where that was asked for.
  tags: Array<string>;
  pinned: boolean; // Every new conversation begins with it.
  special?: string;
  place?: MemoryPlace;
  distance?: number; // From what was asked for, 0 to 2.
  at: Time; // RFC 3339, in UTC.
  changed: Time;
  by?: string;
  run?: string; // In which it was remembered.
  step?: string;
}

/** Where in a tree of files a memory comes from: lines Line to End of File, which is relative, with slashes, to the root that was indexed. */
export interface MemoryPlace {
  file: string;
  line: number;
  end: number;
}

/** A memory among others. */
export interface MemoryScope {
  scope: string;
  memories: number;
  pinned: number;
  model: string; // That embeds it; "" before the first memory.
  head: string; // CID of its newest event.
  seq: number; // Of that event.
}

/** The memories of a store: wf.memory_scopes/v1. */
export interface MemoryScopes {
  items: Array<MemoryScope>;
  schema: "wf.memory_scopes/v1";
}

/** How a suspended run goes on once its definition was corrected: as a fork, under the corrected one. */
export interface Mend {
  step: string; // The step to fork at; "" is the beginning: the run is started anew.
  after?: boolean; // Keep the step and go on behind it.
}

/** One message of a conversation, in the order and form in which it is hashed. */
export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  tool_calls?: Array<CallMessage>;
  tool_call_id?: string;
  is_error?: boolean;
  opaque?: string; // A provider's own block, for example signed thinking; sent back verbatim inside the visit, never part of P_k.
}

/** A text from elsewhere. */
export interface MessageRequest {
  source: string; // Where it comes from: mail, slack, a name.
  text: string;
}

/** A Prompt with what the provider had seen of it before. */
export interface Messages {
  schema: "wf.messages/v1";
  digest: CID; // As in the prompt event.
  messages: Array<Message>;
  tools: Array<unknown>; // A list.
  reused_from?: string; // RUN:STEP whose result was taken: nothing was sent then. Left out where the visit was performed.
  resumes: string | null; // The visit whose conversation goes on, or null.
  shared_prefix: number; // Leading messages that were sent with it, byte for byte.
  seam?: Seam;
  command?: Command; // What a role that runs a command was given: no model was asked.
}

/** Models that are tried in order; one may stand alone. */
export type Models = string | Array<string>;

/** What a notification is about. */
export type Moment = "waiting" | "failed" | "done" | "limit" | "trigger";

/** A name with a template. A value that is only one ${{ }} keeps its type; a non-string YAML value is held as canonical JSON under JSON. */
export interface NamedTemplate {
  name: string;
  value?: string; // Template.
  json?: string; // Canonical JSON; strings inside it may be templates.
}

/** One thing to remember. Spaces around its text are dropped, and what has the shape of a key is replaced by [redacted:KIND]. */
export interface Note {
  content: string;
  tags?: Array<string>;
  pinned?: boolean;
  special?: string; // protocol.SpecialAnchor or "". The anchor takes the place of the one before it; it has no tags and is always pinned.
  place?: Record<string, unknown>;
}

/** A delivery of a notification at one sink. */
export interface Notification {
  sink: string;
  status: "waiting" | "delivered" | "dead"; // Waiting, delivered or dead: the last is attempted no more.
  id: string;
  run: string; // "" of one about a trigger.
  seq: number; // Of the event that it is about.
  step?: string;
  on: Moment;
  reminder?: number; // Of waiting: n of the n-th reminder of a question.
  escalated?: number; // Of waiting: n where a question was put to further people for the n-th time.
  due: Time;
  trigger?: Alarm; // What became of a schedule or a webhook that was served.
  attempts: number; // That did not work.
  next: Time | null; // When it is attempted again; null is at once, or never.
  delivered: Time | null;
  error?: string; // Of the last attempt that did not work.
}

/** Deliveries of notifications: wf.notifications/v1. Of those that went well each sink keeps the last 200. */
export interface NotificationList {
  schema: "wf.notifications/v1";
  sinks: Array<Sink>;
  items: Array<Notification>; // The newest first.
  next?: string; // Part.After of those behind these; "" at the end.
}

/** The deliveries that are attempted again: wf.notifications_retried/v1. */
export interface NotificationsRetried {
  schema: "wf.notifications_retried/v1";
  retried: Array<string>; // Their ids, sorted.
}

/** A memory with the state of the scope that it is of: wf.memory/v1. */
export interface OneMemory {
  head: string;
  memory: MemoryItem;
  schema: "wf.memory/v1";
  scope: string;
  seq: number;
}

/** A step that has not ended. */
export interface OpenStep {
  step: string;
  status: string; // Running, waiting, retrying or parked.
  error?: string; // Of its newest attempt that failed.
}

/** The files of a visit that had a copy of the workspace for itself, or of a merge of such visits. They are no looks at the workspace. */
export interface OwnVisit {
  step: string;
  seq: number; // Of its newest event of these: own_copy, step_completed.
  time: Time; // Of that.
  base: string; // The tree at the fan-out.
  found?: string; // The tree that it began with, where that is what From left.
  from?: string; // The visit from whose copy it went on.
  tree?: string; // As it was left, or merged; left out where the visit did not end well, or has not ended.
  merged?: Array<string>; // Of a merge: the visits whose changes it took over, in that order.
}

/** The step of the parent that a run is the sub-workflow of. */
export interface ParentRun {
  run: string;
  step: string;
}

/** wf.queue/v1: jobs, the oldest first. */
export interface Queue {
  schema: "wf.queue/v1";
  items: Array<Job>;
}

/** The place of a run or a step that waits for a slot of its concurrency group. */
export interface QueuePlace {
  group: string;
  ticket: number; // Lower ones come first.
  behind: Array<string>; // What holds the slots: RUN, or RUN:STEP.
  ahead: number; // How many wait before it.
}

/** wf.queued/v1: a job that is no run yet. */
export interface Queued {
  schema: "wf.queued/v1";
  id: string;
  workflow: string;
  priority: number; // Larger ones first; 0 is usual.
  state: JobState;
  since: string; // Of the state.
  submitted: string; // When it came first.
  attempts: number; // Leases so far.
  agent: string; // That holds the lease, or held the last one.
  epoch: number; // Of that lease, 0 before the first.
  run?: string; // What it became, when done.
  why?: string; // Code of what ended the last lease.
  reason?: string; // Why a queued job is not leased now, as the hub sees it; a queue leaves it empty.
}

/** wf.ready/v1: whether requests are answered. Why not is not told: anyone may ask. */
export interface Ready {
  schema: "wf.ready/v1";
  ready: boolean;
}

/** Recall asks a memory. A text, tags or both are wanted. */
export interface RecallRequest {
  scope?: string;
  text?: string; // The nearest in meaning; "" is by tags alone, the newest first.
  tags?: Array<string>; // Only memories with one of these.
  all_tags?: boolean;
  limit?: number; // At most so many, up to MaxRecalled; 0 is 5, and 20 by tags alone.
  within?: number; // Only those no farther than this; 0 is any distance.
  model?: string; // Embedding model, "" is the one that the memory has.
}

/** What was found, the nearest first: wf.memory_search/v1. */
export interface Recalled {
  items: Array<MemoryItem>;
  model: string;
  query: string;
  schema: "wf.memory_search/v1";
  scope: string;
}

/** Reindex says how a memory is indexed. */
export interface ReindexRequest {
  scope?: string;
  model?: string; // Embedding model from here on; "" is the one that the memory has.
}

/** wf.memory_reindexed/v1. */
export interface Reindexed {
  schema: "wf.memory_reindexed/v1";
  scope: string;
  model: string;
  memories: number;
  embedded: number; // Anew.
}

/** What is to be remembered. */
export interface RememberRequest {
  scope?: string;
  model?: string; // That embeds a memory which has none yet; "" is the built-in one.
  new?: boolean; // New passes over what the memory holds already, with the same text, tags and place, and an anchor where there is one.
  notes?: Array<Note>;
}

/** wf.memory_remembered/v1. */
export interface Remembered {
  added: number;
  head: string;
  ids: Array<number>; // One for each note; 0 for one that was passed over.
  schema: "wf.memory_remembered/v1";
  scope: string;
  seq: number;
}

/** Resume says how a run is gone on with. */
export interface ResumeRequest {
  limits?: Record<string, number | string>; // Limits by name, raised to: steps, tokens, cost_usd in dollars, duration as in 30m.
  here?: boolean; // Here has a run whose files are on another machine go on in a copy of them on the machine of the process that is asked.
}

/** RetryNotifications says what is attempted again: one of the two is given. */
export interface RetryNotificationsRequest {
  ids?: Array<string>; // Each may be cut short.
  all?: boolean; // All that failed.
}

/** What became of reusing the result of a visit. */
export interface Reuse {
  key?: string; // Of all that the result follows from.
  from?: string; // RUN:STEP with the result that was taken; left out where the visit was performed.
  memo?: CID; // Of that result.
  files?: number; // That it changed.
  spared_ms?: number; // That performing it took.
  why?: string; // Why the visit was performed: none, differs, conflict, expired, lost, off or cannot.
  part?: string; // The first thing that differs from Compared, or the path that is in the way.
  compared?: string; // RUN:STEP.
  reason?: string; // Why in a sentence.
  not_stored?: string; // NotStored says why the own result is not kept for others.
}

/** Reuses says what became of the steps of a run that took earlier results, and of the others. A step that only takes values over, and an empty fan-out, is neither. */
export interface Reuses {
  performed: number; // Steps that were performed and have ended; 0: nothing was.
  reused: number; // Steps that took an earlier result.
  from: Array<string>; // The runs that performed what was taken, as far as steps of the run are shown.
}

/** What a run did with a role. */
export interface Role {
  role: string;
  visits: number; // A fan-out is one.
  status: "ok" | "failed" | "skipped" | "running" | "queued" | "waiting" | "parked" | "retrying"; // Of its newest visit.
}

/** What became of a token: the edges that were tried for it in order, with what they saw. */
export interface Routing {
  from: Array<string>; // The steps whose token it is; of a join all of its sources.
  failed: boolean; // A step of it failed.
  at: Array<string>; // END, FAIL or SUSPEND, where an edge led there; empty for a token that waits or that no edge takes.
  tried: Array<Tried>;
  bounds: Array<Bound>;
}

/** How a row of a Table stands. */
export type RowState = "queued" | "running" | "passed" | "mixed" | "failed" | "error";

/** The tokens of a run, as the state of the run counts them. */
export interface RowUsage {
  calls: number;
  input: number;
  cached: number;
  output: number;
}

/** A run as people and programs see it: wf.run/v1. */
export interface Run {
  schema: "wf.run/v1";
  id: string;
  workflow: string;
  definition: CID;
  status: Status;
  driven?: boolean; // Whether a process drives the run; left out unless it is running or queued, and where that is not known.
  idle?: Idle; // Where driven is false.
  lacks?: Array<string>; // Lacks is, where driven is false, what is missing so that a process can go on with it, of this one and all workers of the store: what roles need, and place:MACHINE where its files are on another machine. Of several workers that lack something it is what lacks least.
  foreign?: boolean; // It came from elsewhere (an archive, a clone, a copy of the store that was put back): it is not driven or answered before wf store adopt on that machine.
  closing?: Status; // What the run ends as, while its always roles run.
  reason: string;
  cause?: Cause; // Of a run that failed, or closes as failed: the step with which the way to FAIL began.
  suspended_by?: SuspendReason;
  code?: string; // Of the error behind a suspension.
  head: CID; // Of the newest event.
  seq: number; // Of the newest event.
  result: CID | null; // Null until the run is done.
  steps: Array<StepView>; // In the order in which they began; at most 1000, the newest.
  steps_total?: number; // Of the run, where steps is not all of them.
  earlier?: number; // Before, for the steps before these; left out where there are none.
  steps_matching?: number; // How many steps of the run are of the states and the role that were asked for; left out where neither was.
  fans?: Array<FanTally>; // The fan-outs of the run, where steps of some states or of a role were asked for, or fan-outs as one step.
  roles?: Array<Role>; // That were entered, where steps is not all of them.
  ways?: Array<WayTaken>; // Out of edges that the run took, where steps is not all of them.
  outputs: Record<string, unknown>;
  usage: Usage;
  cost_usd: number | null; // Null: unknown.
  started: Time;
  updated: Time; // Of the newest event.
  active_ms: number; // In which something was at work.
  wall_ms: number; // From the first event to the newest, waits included.
  ended?: Time; // Left out of a run that has not ended.
  timing: Timing;
  scripted_calls: number;
  reuse?: Reuses; // Left out where no step took an earlier result.
  waiting?: Array<Waiting>;
  queue?: QueuePlace; // Of a queued run: what it waits behind.
  mend?: Mend; // Of a suspended run whose definition is wrong: how it goes on.
  leftovers?: Array<string>; // Joins of a finished run that still wait, and for which roles.
  cleanup_failed?: Array<CleanupFailed>; // Always roles that failed or were skipped; what the run concluded stands.
  forks?: Array<ForkPoint>; // Runs that share events of this one, and up to where; at most 100.
  info: RunInfo;
}

/** Diff compares two runs: wf.diff/v1. */
export interface RunDiff {
  schema: "wf.diff/v1";
  left: string;
  right: string;
  equal: boolean;
  steps: Array<StepDiff>;
  definition: Array<string>; // Paths that differ.
  inputs: Array<string>; // Paths that differ.
}

/** Why a run ended, or is where it is: wf.explain_run/v1. */
export interface RunExplanation {
  schema: "wf.explain_run/v1";
  run: string;
  status: Status;
  closing?: Status; // What the run ends as, while its always roles run.
  reason: string;
  suspended_by?: SuspendReason;
  cause?: Cause; // Of a run that failed, or closes as failed.
  child?: string; // The run of the sub-workflow that the step of cause performed.
  way?: Explanation; // Of a run that failed: why the first step was entered from which nothing but FAIL could be reached; of one that goes on: why the first of open was.
  open: Array<OpenStep>; // The steps that have not ended, in the order in which they began; at most 100.
  lacking: Array<string>; // Joins that wait, and for which roles.
  routings: Array<Routing>; // Those of the tokens that stay: what led the run to its end, or keeps it; at most 100, the one that led to FAIL first.
  routings_total: number;
}

/** What a run was started with. */
export interface RunInfo {
  title: string;
  description: string;
  type: string;
  scope: string;
  tags: Array<string> | null;
  created_by: string; // The user, or the name of the token by which a client started it.
  claimed_by?: string; // The name that the client sent, where it differs; it has no effect.
  target_user: string;
  request_id: string;
  workspace: string;
  machine?: string; // That workspace is on, where that is another one than that of the process which is asked.
  file: string;
  parent: ParentRun | null;
  forked_from: CID | null; // The newest event that both runs share.
  fork_of?: ForkPoint; // The run that a fork shares its events with, and up to where; left out where that is not in the store.
  inputs: Record<string, unknown>;
  trigger?: Trigger; // What began it; left out where a person or a client did.
  caused_by?: CausedBy; // The notification that started the run.
}

/** A run in a list of runs. */
export interface RunRow {
  id: string;
  workflow: string;
  title: string;
  status: Status;
  driven?: boolean; // Whether a process drives the run; left out unless it is running or queued, and where that is not known.
  idle?: Idle; // Where driven is false.
  lacks?: Array<string>; // Lacks is, where driven is false, what is missing so that a process can go on with it, of this one and all workers of the store: what roles need, and place:MACHINE where its files are on another machine. Of several workers that lack something it is what lacks least.
  foreign?: boolean; // It came from elsewhere, and is not driven before wf store adopt on that machine.
  closing?: Status; // What the run ends as, while its always roles run.
  reason?: string;
  steps: number;
  started: Time;
  updated: Time; // Of the newest event.
  active_ms: number; // In which something was at work.
  wall_ms: number; // From the first event to the newest, waits included.
  ended?: Time; // Left out of a run that has not ended.
  usage: RowUsage;
  cost_usd: number | null; // Null: unknown.
  head: CID; // Of the newest event.
  seq: number; // Of the newest event.
  tags: Array<string>;
  request_id: string;
  parent: string | null; // RUN:STEP of which it is a sub-workflow.
  waiting: Array<Waiting>;
  queue?: QueuePlace; // Of a queued run: what it waits behind.
  agent?: string; // That has the run.
  hits?: Array<Hit>; // Of a search: at most 3 places where its words occur.
}

/** A task with the run that it is of: wf.task/v1. */
export interface RunTask {
  schema: "wf.task/v1";
  run: string;
  id: string; // Of the step.
  goal: string;
  status: TaskStatus;
  failed?: boolean; // Its visit failed for good.
  original: string; // The message that set it.
  state: string; // What the agent noted of its progress.
  question: string; // The last one that was asked.
  final_response: string;
  summary: string;
  shared?: unknown; // Values for later tasks, an object.
  created: Time; // RFC 3339, in UTC.
  completed: Time | null; // Null while it is open.
  duration_s: number | null;
  cost: CostRow | null; // Of all its model calls.
}

/** A part of the list of runs: wf.runs/v1. */
export interface Runs {
  schema: "wf.runs/v1";
  items: Array<RunRow>;
  next: string | null; // Before, for the next page; null at the end. What moves meanwhile is not listed twice.
  searched?: Searched; // How far runs are searched; left out where no text and no person is looked for.
  counts?: Record<string, number>; // The runs by status that fit all else that was asked; on a first page that was asked with counts.
  unread?: Array<Why>; // Why runs are not listed: they are damaged, or of a newer wf.
  missing?: Array<string>; // The workers of a hub whose runs are not listed: they did not answer in time, or are away.
}

/** Something that credentials allow. */
export type Scope = "read" | "run" | "answer" | "admin" | "metrics" | "agent";

/** Where what an earlier request had ends within a prompt. */
export interface Seam {
  step: string; // Of the earlier request.
  before: number; // Index of the message that it is before.
  shared: number; // Leading bytes that are the same.
  bytes: number; // Of the prompt.
  differs: string; // What differs: tools, system, history; "" where all of the earlier request is in it.
}

/** Searched says how far what was said in runs is searched. */
export interface Searched {
  runs: number; // That are searched whole.
  behind: number; // Of which the newest texts, or all, are not searched yet.
  up_to: Time; // Runs whose newest event is not after this are searched whole; empty where there are none.
}

/** Where notifications go. */
export interface Sink {
  name: string; // Of a project project/NAME, of a workflow workflow/WORKFLOW/NAME.
  to?: string; // Where they go; left out for one of a workflow, which says it.
  on?: Array<Moment>; // None is all.
  workflows?: Array<string>; // That it is for; none is all.
  delivered: number;
  waiting: number;
  dead: number;
}

/** What a run is started with. */
export interface StartRequest {
  workflow: string; // Name or file of one that is listed; NAME@CID starts only the definition of that CID.
  inputs?: Record<string, unknown>;
  title?: string;
  description?: string;
  type?: string;
  scope?: string;
  tags?: Array<string>;
  created_by?: string; // Over HTTP a claim, kept as claimed_by: the run is of the token's name.
  target_user?: string;
  request_id?: string; // The same id starts nothing twice.
  firing?: string; // A minute at which the schedule of the workflow is due, in RFC 3339: the run is that of the firing, whose request id it has, and is started once. It takes no inputs.
  models?: Record<string, Models>; // By role, "" is every role.
  context?: "" | "conversation" | "task" | "fresh"; // How agents see their past: conversation, task, fresh; "" is as their roles say.
  cache?: string; // What the run does about results that can be reused: off reuses none, offline performs nothing that could have been reused; "" reuses them.
  priority?: number; // Priority in the queue of a hub, from -9 to 9: larger ones are begun first. A server without a queue refuses it.
  allow_secret_inputs?: Array<string>; // Inputs that may hold a secret, which then is stored, shown and sent. Without it such inputs are refused.
  caused_by?: string; // The notification that starts the run, as the header wf-caused-by of a webhook and the variable WF_CAUSED_BY of a command say it: RUN:SEQ:DEPTH.
}

/** wf.started/v1. */
export interface Started {
  schema: "wf.started/v1";
  id: string;
  fresh: boolean; // False: the request id was used before, nothing was started.
  agent?: string; // That has the run.
}

/** The state of a run. */
export type Status = "queued" | "running" | "waiting" | "suspended" | "done" | "failed" | "cancelled";

/** What a command reads: the text, or, where File is set, that file. */
export interface Stdin {
  text?: string; // Template.
  file?: string; // Template of a path, relative to where the command works.
}

/** A visit with the run that it is of: wf.step/v1. */
export interface Step {
  schema: "wf.step/v1";
  run: string;
  id: string; // coder#2, or coder#1[0] for an item of a fan-out.
  role: string;
  action: Action;
  visit: number;
  item?: number;
  cid: CID | null; // Of its record; null until it has ended.
  status: "ok" | "failed" | "skipped" | "running" | "queued" | "waiting" | "parked" | "retrying"; // Ok, failed, skipped; running, queued, waiting, parked, retrying.
  began?: number; // Its first event.
  ended?: number; // Its last event; left out while it goes on.
  parents: Array<CID>;
  resumes: CID | null; // The visit whose conversation goes on.
  edge: number; // Index in the definition.
  via: Via;
  edge_prompt: string;
  output: Record<string, unknown>;
  text: string;
  error: Failure | null;
  attempts: Array<Attempt>;
  tool_calls: number;
  usage: Usage;
  ms: number;
  workspace: GitState | null;
  child?: string; // The run of a sub-workflow.
  held?: string; // Held says what keeps a visit back that runs, and waits for the limits of a provider.
  compactions?: Array<Compaction>; // In order; each took the place of what was read before it.
  corrections?: Array<string>; // Why answers did not fit the declared output, one for each that the model was sent.
  queue?: QueuePlace; // Set while the step waits for a slot of the concurrency group of its role.
  artifacts?: CID; // The tree of the files that the step keeps; left out where there are none.
  reuse?: Reuse; // Reuse says of a role with cache whether an earlier result was taken, and why not; left out for other roles.
  cut_off?: boolean; // Set where the newest reply has as many tokens as it may have, and so no end.
}

/** StepDiff compares two visits of one name. */
export interface StepDiff {
  id: string;
  how: "equal" | "changed" | "left" | "right"; // Equal, changed, left, right.
  left: CID | null;
  right: CID | null;
  changed: Array<string>; // What differs, in words.
  unified?: string; // Unified diff of the texts.
}

/** A file of a tree, or one that was removed. */
export interface StepFile {
  path: string;
  mode: string; // File, exec, link or omitted.
  size: number; // Bytes.
  cid?: string; // Of its content.
  why?: string; // It was omitted: name, special, size, secret, unstable or denied.
  change?: string; // Added, changed or removed.
  by?: Array<string>; // Which visits did that, in order: coder#1, outside, or one of several.
}

/** The files that a step left, or found: wf.files/v1. */
export interface StepFiles {
  schema: "wf.files/v1";
  run: string;
  step: string; // "" for the whole run.
  phase: string; // Of the look that has them: start, before, call or after.
  tree: CID;
  files: Array<StepFile>;
  next?: string; // Give it as after to read on; left out at the end.
}

/** One visit of a role. */
export interface StepView {
  id: string; // coder#2, or coder#1[0] for an item of a fan-out.
  role: string;
  action: Action;
  visit: number;
  item?: number;
  cid: CID | null; // Of its record; null until it has ended.
  status: "ok" | "failed" | "skipped" | "running" | "queued" | "waiting" | "parked" | "retrying"; // Ok, failed, skipped; running, queued, waiting, parked, retrying.
  began?: number; // Its first event.
  ended?: number; // Its last event; left out while it goes on.
  parents: Array<CID>;
  resumes: CID | null; // The visit whose conversation goes on.
  edge: number; // Index in the definition.
  via: Via;
  edge_prompt: string;
  output: Record<string, unknown>;
  text: string;
  error: Failure | null;
  attempts: Array<Attempt>;
  tool_calls: number;
  usage: Usage;
  ms: number;
  workspace: GitState | null;
  child?: string; // The run of a sub-workflow.
  held?: string; // Held says what keeps a visit back that runs, and waits for the limits of a provider.
  compactions?: Array<Compaction>; // In order; each took the place of what was read before it.
  corrections?: Array<string>; // Why answers did not fit the declared output, one for each that the model was sent.
  queue?: QueuePlace; // Set while the step waits for a slot of the concurrency group of its role.
  artifacts?: CID; // The tree of the files that the step keeps; left out where there are none.
  reuse?: Reuse; // Reuse says of a role with cache whether an earlier result was taken, and why not; left out for other roles.
  cut_off?: boolean; // Set where the newest reply has as many tokens as it may have, and so no end.
}

/** SuspendReason says why a run was suspended. */
export type SuspendReason = "interrupt" | "error" | "stalled" | "limit" | "answer";

/** What a sweep or an eval has come to so far, a row for each variant or case: wf.table/v1. It is for screens; the commands themselves write wf.sweep/v1 and wf.eval/v1. */
export interface Table {
  schema: "wf.table/v1";
  id: string;
  kind: TableKind;
  title: string; // What is compared, in a line.
  complete: boolean; // All trials have ended.
  live: boolean; // A process is at work on it.
  began: Time;
  changed: Time;
  rows: number;
  done: number; // Trials that have ended.
  trials: number; // That there are to be.
  failed: number; // Trials that did not pass, or could not be told.
  notes: Array<string>; // Sentences below it.
  columns: Array<TableColumn>;
  body: Array<TableRow>;
}

/** A column of a Table. */
export interface TableColumn {
  name: string;
  number: boolean; // Its cells stand right.
}

/** What a list shows of a sweep or an eval. */
export interface TableHead {
  id: string;
  kind: TableKind;
  title: string; // What is compared, in a line.
  complete: boolean; // All trials have ended.
  live: boolean; // A process is at work on it.
  began: Time;
  changed: Time;
  rows: number;
  done: number; // Trials that have ended.
  trials: number; // That there are to be.
  failed: number; // Trials that did not pass, or could not be told.
}

/** What made a table. */
export type TableKind = "sweep" | "eval";

/** The sweeps and evals of a store: wf.tables/v1. */
export interface TableList {
  schema: "wf.tables/v1";
  items: Array<TableHead>; // The one that changed last first.
  next?: string; // Part.After of those behind these; "" at the end.
}

/** A variant of a sweep, or a case of an eval. */
export interface TableRow {
  state: RowState;
  cells: Array<string>; // One for each column, as people read it.
  why?: string; // It did not pass, in a sentence.
  runs: Array<string>; // Of its trials, at most TableRuns, those that did not pass first.
  others?: number; // Runs beyond those.
}

/** One task. */
export interface Task {
  id: string; // Of the step.
  goal: string;
  status: TaskStatus;
  failed?: boolean; // Its visit failed for good.
  original: string; // The message that set it.
  state: string; // What the agent noted of its progress.
  question: string; // The last one that was asked.
  final_response: string;
  summary: string;
  shared?: Record<string, unknown>; // Values for later tasks, an object.
  created: Time; // RFC 3339, in UTC.
  completed: Time | null; // Null while it is open.
  duration_s: number | null;
  cost: CostRow | null; // Of all its model calls.
}

/** Tasks of a run: wf.tasks/v1. */
export interface TaskList {
  schema: "wf.tasks/v1";
  run: string;
  items: Array<Task>;
  next?: string; // Part.After of the tasks behind these; "" at the end.
}

/** The state of a task. */
export type TaskStatus = "active" | "waiting" | "completed";

/** A part of a condition with its value, as JSON. */
export interface Term {
  source: string;
  value: unknown;
  error?: string;
}

/** A time as in RFC 3339, in UTC. */
export type Time = string;

/** Timing says what the time of visits of agents and commands went into, waiting for people and timers left out. ttfe, thinking and tools add up to the total, and the percentages to 100 where there is any time. */
export interface Timing {
  total_ms: number;
  ttfe_ms: number; // Until the model's first event, once for each visit.
  thinking_ms: number; // The rest.
  tools_ms: number; // In which a tool or command ran; side by side counts once.
  tool_calls: number;
  ttfe_pct: number;
  thinking_pct: number;
  tools_pct: number;
}

/** One edge that was looked at. */
export interface Tried {
  edge: number;
  from: Array<string>;
  to: Array<string>;
  when: string;
  holds: boolean;
  taken: boolean;
  join: boolean; // The token waits here for others, whatever the conditions say.
  on_limit?: string; // Where the token went instead, because a bound was reached.
  error?: string;
  terms: Array<Term>;
}

/** What began a run that neither a person nor a client asked for. */
export interface Trigger {
  kind: string; // TriggerSchedule, or the kind of a webhook.
  name: string; // Of the workflow whose schedule or webhook it is.
  delivery?: string; // The minute of a firing in RFC 3339, or what the sender of an event calls its delivery. The latter is not signed at GitHub, and tells nothing apart.
}

/** The sum of model calls, in tokens; what no provider reported is null. */
export interface Usage {
  calls: number;
  input: number | null;
  cached: number | null;
  cache_write_5m: number | null;
  cache_write_1h: number | null;
  output: number | null;
  reasoning: number | null;
}

/** What a verification found: wf.verify/v1. It is ok when there are no findings; what could not be checked is listed under not_proven and is no failure. */
export interface Verify {
  schema: "wf.verify/v1";
  ok: boolean;
  checked: Checked;
  findings: Array<Finding>;
  not_proven: Array<string>;
}

/** Via says how a visit was reached. */
export type Via = "edge" | "limit" | "start" | "always";

/** What a visit waits for. */
export type WaitKind = "question" | "choice" | "approval" | "signal" | "timer" | "task";

/** What a run waits for. */
export interface Waiting {
  step: string;
  kind: WaitKind;
  question: string; // For a signal, its name.
  choices: Array<Choice> | null;
  form?: Record<string, unknown>; // JSON Schema of the fields to fill in.
  due: Time | null; // Of a timer, and of a question that is to be answered by then.
  shown?: string; // The digest of the tool call that question shows. Choices are allow, allow_run (exactly this call, until the run ends; not always offered) and deny, whose text is the reason.
  on_timeout?: string; // What happens then to a question: the value of a choice, fail or escalate.
  remind?: Array<Time>; // When it is called to mind.
  assignees?: Array<string>; // The names whose authenticated answers count; none is anyone.
  escalated?: number; // How often it was put to further people.
}

/** A way that a run took. */
export interface WayTaken {
  edge: number; // Index in the definition.
  to: string;
  limit?: boolean; // Since a bound was exhausted.
  times: number;
}

/** A failure with a code that travels: over the wire, in -o json, and to the exit status. */
export interface Why {
  code: string; // Stable, snake_case.
  message: string;
  fix: string; // What to do, for people.
}

/** A workflow that can be started. */
export interface Workflow {
  name: string;
  description: string;
  file: string; // Path, as it is recorded with its runs.
  inputs: Record<string, unknown>; // JSON Schema of the inputs, an object.
  schedule: string | null; // Cron expression, or null.
  timezone?: string; // Of the schedule; left out it is UTC.
  overlap?: string; // Of the schedule: skip or queue; left out it is allow.
  catch_up?: string; // Of the schedule: all or none; left out it is last.
  next?: Time; // When the clock starts it next.
  firings?: string; // How the request ids of its firings begin; behind it comes the minute, in RFC 3339.
  webhook?: string; // The path that takes its events, as in /v1/hooks/NAME.
  schedule_problem?: string; // Why its schedule starts nothing yet.
  webhook_problem?: string; // Why its webhook takes no events yet.
  stopped_since?: Time; // Since when its schedule or webhook, which was served, starts nothing: its problem says why.
  problem: string; // Why it cannot be started, "" if it can; of a hub also that its workers have different definitions.
  definition?: CID; // Of a valid one.
  waits_for_trust?: boolean; // Waits: it is started neither by a client nor by the clock before a person trusts it on that machine, with wf trust.
  agents?: Array<string>; // That can start it.
}

/** wf.workflows/v1: what can be started, by name. */
export interface Workflows {
  schema: "wf.workflows/v1";
  items: Array<Workflow>;
  missing?: Array<string>; // Workers that did not answer in time.
}
