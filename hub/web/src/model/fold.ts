// The state of a run at any seq: a fold over its events. The server folds too, and knows more
// (records, prices); this is what the page needs to replay.

import type {Choice, Status, StepView, Via, WaitKind} from "./service.ts";
import {plural} from "./text.ts";
import {cidOf, textOf, type Entry, type Text} from "./wire.ts";

/** unread: it ended well, or as an old journal does not say; its record, which was not read, says how. */
export type StepStatus = StepView["status"] | "unread";

/** A stretch of a visit: at work, or waiting for someone. to is null while it lasts. */
export interface Span {
  from: number;
  to: number | null;
  kind: "work" | "wait";
}

export interface Usage {
  calls: number;
  input: number;
  cached: number;
  output: number;
}

export interface Question {
  step: string;
  kind: WaitKind;
  question: Text;
  choices: Choice[];
  form: Text; // JSON Schema
  due: number; // unix milliseconds, 0 is never
  assignees: string[]; // whose answers count; none is anyone
  since: number;
  shown: string; // digest of the tool call that the question shows
}

export interface Step {
  id: string;
  role: string;
  visit: number;
  item: number | null;
  edge: number;
  via: Via;
  prompt: Text;
  resumes: string | null;
  status: StepStatus;
  record: string | null;
  attempt: number;
  failures: {attempt: number; code: string; message: string}[];
  first: number; // seq of its step_started
  last: number; // seq of its newest event
  lastAt: number;
  spans: Span[];
  ms: number;
  toolCalls: number;
  usage: Usage;
  said: Text; // its newest text
  held: string; // what keeps it back while it is held by the limits of a provider, "" while it is not
}

/** What holds a step, in words. */
export function heldBy(d: Record<string, unknown>): string {
  const provider = `the provider ${textOf(d["provider"])}`;
  const of = `of ${provider}`;
  const n = num(d["max"]);
  switch (textOf(d["limit"])) {
    case "requests": return `waits for the limit of ${plural(n, "request")} a minute ${of}`;
    case "tokens": return `waits for the limit of ${plural(n, "token")} a minute ${of}`;
    case "in_flight": return `waits for the limit of ${plural(n, "request")} at once ${of}`;
    case "retry_after": return `waits, since ${provider} asked to`;
  }
  return `waits for ${provider}: ${textOf(d["why"])}`;
}

/** How long a step took, or goes on already; NaN where that is not known. */
export function took(s: Step, now: number): number {
  const last = s.spans.at(-1);
  return s.record !== null ? s.ms : last ? (last.to ?? now) - s.spans[0]!.from : s.ms || NaN;
}

/** The key of a way out of an edge: to one of its targets, or to where its bound diverts it. */
export function way(edge: number, to: string, limit: boolean): string {
  return `${edge} ${limit ? "limit" : "edge"} ${to}`;
}

export const telling: StepStatus[] = ["ok", "skipped", "parked", "failed", "queued", "retrying", "waiting", "running"];

export class State {
  constructor(public seq = 0) {} // the newest event taken in, or the one before the first that will be

  cid = "";
  at = 0; // of the newest event
  began = 0;
  title = "";
  status: Status = "running";
  reason = "";
  closing: Status | "" = ""; // what the run ends as, while its always roles run
  steps = new Map<string, Step>(); // in order of their start
  taken = new Map<string, number>(); // way → times
  waiting = new Map<string, Question>(); // by step
  usage: Usage = {calls: 0, input: 0, cached: 0, output: 0};
  limits = new Map<string, number>(); // the limits that were reached, with their maximum
  count = 0; // of all steps; this.steps may lack early ones
  earlier = 0; // the event before which those began, 0 where none are lacking
  #busy = new Set<string>(); // steps that run or will be tried again
  #over = false;
  #suspended = false;
  #why = ""; // it ends as it closes
  #queued = false;
  #entered = new Map<string, {visits: number; status: StepStatus}>(); // role → its visits, a fan-out is one; the status is that before this.steps

  /** Whether nothing can happen to the run any more. */
  get final(): boolean {
    return this.#over;
  }

  /** The status of the newest visit of a role that was entered: of a fan-out that of the item that tells most. It is not known while items may be lacking. */
  newest(role: string): StepStatus | undefined {
    let found = this.#entered.get(role)?.status;
    let visit = 0;
    let lacking = this.earlier > 0; // until a step that is no item of the visit
    let partial = false;
    for (const s of this.steps.values()) {
      if (s.item === null) lacking = false;
      if (s.role !== role) continue;
      if (s.visit !== visit) partial = lacking;
      if (s.visit !== visit || s.item === null || telling.indexOf(s.status) > telling.indexOf(found!)) found = s.status;
      visit = s.visit;
    }
    return partial && found === "ok" ? undefined : found;
  }

  /** How often a role was entered; a fan-out is entered once. */
  visits(role: string): number {
    return this.#entered.get(role)?.visits ?? 0;
  }

  #put(s: Step): void {
    this.steps.set(s.id, s);
    this.move(s, s.status);
  }

  /** Notes that a step has begun, and the way that led to it. */
  enter(s: Step, attempt = 1): void {
    this.#put(s);
    const n = visitOf(s.id);
    const known = this.#entered.get(s.role)?.visits ?? 0;
    if ((n < known || attempt > 1) && this.earlier > 0) return; // one that began earlier goes on
    this.count++;
    if (n <= known) return;
    this.#entered.set(s.role, {visits: n, status: s.status});
    if (s.via === "always") return; // by no edge
    const key = way(s.edge, s.role, s.via === "limit");
    this.taken.set(key, (this.taken.get(key) ?? 0) + 1);
  }

  /** Begins where the server says that a run stands: with some of its steps, and sums over all of them. */
  begin(at: {seq: number; cid: string; at: number; began: number; title: string; status: Status; closing: Status | ""; reason: string; earlier: number}): void {
    Object.assign(this, at);
    this.#over = at.status === "done" || at.status === "failed" || at.status === "cancelled";
    this.#suspended = at.status === "suspended";
    this.#queued = at.status === "queued";
  }

  /** Notes what the whole run did with a role. */
  enteredSoFar(role: string, visits: number, status: StepStatus): void {
    this.#entered.set(role, {visits, status});
  }

  /** Takes over what a fold of a part of the journal up to here knows more exactly. */
  adopt(part: State): void {
    for (const [id, s] of part.steps) if (this.steps.get(id)?.first === s.first) this.#put(s);
    for (const [limit, max] of part.limits) this.limits.set(limit, max);
  }

  /** Puts steps that began earlier before those that are held. */
  prepend(steps: readonly Step[], earlier: number): void {
    const later = [...this.steps.values()];
    this.steps.clear();
    for (const s of [...steps, ...later]) this.#put(s);
    this.earlier = earlier;
  }

  /** Takes the next event in. Unknown types and missing fields are passed over. */
  apply(e: Entry): void {
    this.seq = e.seq;
    this.cid = e.cid;
    this.at = e.at;
    if (e.seq === 1) this.began = e.at;
    const step = this.steps.get(e.step);
    if (step) step.last = e.seq;
    folds[e.type]?.(this, e, step);
    if (step) step.lastAt = e.at;
    if (!quiet.has(e.type)) this.#settle();
  }

  #settle(): void {
    if (this.#over) return;
    this.status = this.#suspended ? "suspended" : this.#queued ? "queued" : this.waiting.size > 0 && this.#busy.size === 0 ? "waiting" : "running";
  }

  /** Moves a step to another status. */
  move(s: Step, status: StepStatus): void {
    s.status = status;
    s.held = "";
    if (status === "running" || status === "retrying" || status === "queued") this.#busy.add(s.id);
    else this.#busy.delete(s.id);
  }

  /** Waits for a slot of a group, or has one. */
  line(behind: string): void {
    this.#queued = behind !== "";
    this.reason = behind;
  }

  suspend(reason: string): void {
    this.#suspended = true;
    this.#queued = false;
    this.reason = reason;
    for (const s of this.steps.values()) {
      if (this.#busy.has(s.id)) this.move(s, "parked");
      if (s.status === "parked") close(s, this.at);
    }
  }

  goOn(): void {
    this.#suspended = false;
    if (!this.#queued) this.reason = this.#why;
  }

  /** A fork goes on from what may have been the end of another run. */
  reopen(): void {
    this.#over = false;
    this.closing = this.#why = "";
    this.#queued = false;
    this.goOn();
  }

  /** What the run ends as stands; its always roles run, and nothing of its graph. */
  close(status: Status, message: Text): void {
    this.closing = status;
    this.#suspended = false;
    this.reason = this.#why = textOf(message);
    this.#stop();
  }

  end(status: Status, reason: string): void {
    this.#over = true;
    this.closing = this.#why = "";
    this.status = status;
    this.reason = reason;
    this.#stop();
  }

  #stop(): void {
    this.waiting.clear();
    for (const s of this.steps.values()) {
      close(s, this.at);
      if (this.#busy.has(s.id) || s.status === "waiting") this.move(s, "parked");
    }
  }
}

// The number of a visit: 2 of coder#2 and of coder#2[7].
function visitOf(step: string): number {
  return Number(/#(\d+)/.exec(step)?.[1] ?? 1);
}

/**
 * The state after the events up to seq, all of them by default: from the beginning of the run, or
 * from a state that was reached, which is moved. What is not held is passed over.
 */
export function fold(entries: readonly (Entry | undefined)[], seq = entries.length, s = new State()): State {
  for (let i = s.seq; i < seq && i < entries.length; i++) if (entries[i]) s.apply(entries[i]!);
  return s;
}

function close(s: Step, at: number): void {
  const open = s.spans.at(-1);
  if (open && open.to === null) open.to = Math.max(open.from, at);
}

function open(s: Step, at: number, kind: Span["kind"]): void {
  close(s, at);
  s.spans.push({from: at, to: null, kind});
}

// What holds the slots of a group that a run waits for.
function inLine(e: Entry): string {
  const behind = (e.data["behind"] as string[] | undefined) ?? [];
  return `waits for the group ${textOf(e.data["group"])}` + (behind.length ? `, behind run ${behind.at(-1)}` : "");
}

const num = (v: unknown): number => (typeof v === "number" ? v : 0);
const millis = (us: unknown): number => num(us) / 1000;

// Most events are these, and none of them changes where the run stands.
const quiet = new Set(["held", "released", "prompt", "correction", "thinking", "text", "tool_call", "tool_result", "usage", "sandbox", "message", "files", "files_tracked", "files_laid"]);

// What each type of event does. An event of a step that is not known changes nothing.
const folds: Record<string, (r: State, e: Entry, s: Step | undefined) => void> = {
  run_started(r, e) {
    r.title = textOf(e.data["title"]);
  },

  step_started(r, e, s) {
    const d = e.data;
    if (!s) {
      const item = d["item"] as {index?: number} | null | undefined;
      s = {
        id: e.step, role: textOf(d["role"]), visit: num(d["visit"]), item: item ? num(item.index) : null,
        edge: num(d["edge"]), via: textOf(d["via"]) as Via, prompt: d["edgePrompt"] as Text, resumes: cidOf(d["resumes"]),
        status: "running", record: null, attempt: 1, failures: [], first: e.seq, last: e.seq, lastAt: e.at,
        spans: [], ms: 0, toolCalls: 0, usage: {calls: 0, input: 0, cached: 0, output: 0}, said: "", held: "",
      };
      r.enter(s, num(d["attempt"]));
    }
    close(s, s.lastAt); // a process that was killed left it open: it ended with its newest event
    r.move(s, "running");
    s.record = null;
    s.attempt = Math.max(1, num(d["attempt"]));
    r.goOn();
    open(s, e.at, "work");
  },

  text(_r, e, s) {
    if (s) s.said = e.data["content"] as Text;
  },

  tool_call(_r, _e, s) {
    if (s) s.toolCalls++;
  },

  held(_r, e, s) {
    if (s?.status !== "running") return;
    s.held = heldBy(e.data);
    open(s, e.at, "wait");
  },

  released(_r, e, s) {
    if (!s?.held) return;
    s.held = "";
    open(s, e.at, "work");
  },

  usage(r, e, s) {
    for (const u of s ? [r.usage, s.usage] : [r.usage]) {
      u.calls++;
      u.input += num(e.data["input"]);
      u.cached += num(e.data["cached"]);
      u.output += num(e.data["output"]);
    }
  },

  attempt_failed(r, e, s) {
    if (!s) return;
    const err = (e.data["error"] ?? {}) as Record<string, unknown>;
    s.failures.push({attempt: num(e.data["attempt"]), code: textOf(err["code"]), message: textOf(err["message"])});
    r.move(s, num(e.data["retry_at"]) > 0 ? "retrying" : "parked");
    close(s, e.at);
  },

  step_completed(r, e, s) {
    r.waiting.delete(e.step);
    if (!s) return;
    const status = textOf(e.data["status"]);
    r.move(s, status === "ok" || status === "failed" || status === "skipped" ? status : "unread");
    s.record = cidOf(e.data["record"]);
    s.ms += num(e.data["ms"]);
    close(s, e.at);
  },

  waiting(r, e, s) {
    if (!s) return;
    const d = e.data;
    r.waiting.set(s.id, {
      step: s.id, kind: textOf(d["kind"]) as WaitKind, question: d["question"] as Text, choices: (d["choices"] as Choice[] | null) ?? [],
      form: d["form"] as Text, due: millis(d["due"]), since: e.at, shown: textOf(d["shown"]),
      assignees: (d["assignees"] as string[] | null) ?? [],
    });
    r.move(s, "waiting");
    open(s, e.at, "wait");
  },

  escalated(r, e, s) {
    const q = s && r.waiting.get(s.id);
    if (q) r.waiting.set(s.id, {...q, due: millis(e.data["due"]), assignees: (e.data["assignees"] as string[] | null) ?? []});
  },

  answered: unpark,
  timer_fired: unpark,
  approval: unpark,

  suspended(r, e) {
    r.suspend(textOf(e.data["detail"]) || textOf(e.data["reason"]));
  },

  resumed(r) {
    r.goOn();
  },

  queued(r, e) {
    r.line(inLine(e));
  },

  admitted(r) {
    r.line("");
  },

  group_waiting(r, e, s) {
    if (!s) return;
    r.move(s, "queued");
    open(s, e.at, "wait");
  },

  group_entered(r, e, s) {
    if (!s || s.status !== "queued") return;
    r.move(s, "running");
    open(s, e.at, "work");
  },

  limit_reached(r, e) {
    r.limits.set(textOf(e.data["limit"]), num(e.data["max"]));
  },

  limit_changed(r, e) {
    r.limits.delete(textOf(e.data["limit"]));
  },

  forked(r) {
    r.reopen();
  },

  closing(r, e) {
    r.close(textOf(e.data["status"]) as Status, e.data["message"] as Text);
  },

  cancelled(r, e) {
    r.end("cancelled", textOf(e.data["reason"]));
  },

  done(r, e) {
    const status = textOf(e.data["status"]);
    r.end(status === "failed" || status === "cancelled" ? status : "done", "");
  },
};

function unpark(r: State, e: Entry, s: Step | undefined): void {
  if (!r.waiting.delete(e.step) || !s) return;
  r.move(s, "running");
  open(s, e.at, "work");
}
