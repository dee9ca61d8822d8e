// The state of a run at any seq: a fold over its events. The server folds too, and knows more
// (records, prices); this is what the page needs to replay.

import {cidOf, textOf, type Choice, type Entry, type Text} from "./wire.ts";

export type RunStatus = "running" | "waiting" | "suspended" | "done" | "failed" | "cancelled";
export type StepStatus = "running" | "waiting" | "retrying" | "parked" | "ok" | "failed" | "skipped";

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
  kind: string; // question, choice, approval, signal, timer, task
  question: Text;
  choices: Choice[];
  form: Text; // JSON Schema
  due: number; // unix milliseconds, 0 is never
  since: number;
}

export interface Step {
  id: string;
  role: string;
  visit: number;
  item: number | null;
  edge: number;
  via: string;
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
}

/** The key of a way out of an edge: to one of its targets, or to where its bound diverts it. */
export function way(edge: number, to: string, limit: boolean): string {
  return `${edge} ${limit ? "limit" : "edge"} ${to}`;
}

export class State {
  seq = 0;
  cid = "";
  at = 0; // of the newest event
  began = 0;
  title = "";
  status: RunStatus = "running";
  reason = "";
  steps = new Map<string, Step>(); // in order of their start
  taken = new Map<string, number>(); // way → times
  waiting = new Map<string, Question>(); // by step
  usage: Usage = {calls: 0, input: 0, cached: 0, output: 0};
  toolCalls = 0;
  limits = new Map<string, number>(); // the limits that were reached, with their maximum
  private over = false;
  private suspended = false;
  private entered = new Map<string, Set<string>>(); // role → its visits; the items of a fan-out are one

  /** Whether nothing can happen to the run any more. */
  get final(): boolean {
    return this.over;
  }

  /** The newest visit of a role. */
  newest(role: string): Step | undefined {
    let found: Step | undefined;
    for (const s of this.steps.values()) if (s.role === role) found = s;
    return found;
  }

  /** How often a role was entered; a fan-out is entered once. */
  visits(role: string): number {
    return this.entered.get(role)?.size ?? 0;
  }

  /** Notes that a step has begun, and the way that led to it. */
  enter(s: Step): void {
    this.steps.set(s.id, s);
    const visits = this.entered.get(s.role) ?? new Set();
    this.entered.set(s.role, visits);
    const visit = s.id.replace(/\[\d+\]$/, "");
    if (visits.has(visit)) return;
    visits.add(visit);
    const key = way(s.edge, s.role, s.via === "limit");
    this.taken.set(key, (this.taken.get(key) ?? 0) + 1);
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
    if (!quiet.has(e.type)) this.settle();
  }

  private settle(): void {
    if (this.over) return;
    let busy = false;
    for (const s of this.steps.values()) busy ||= s.status === "running" || s.status === "retrying";
    this.status = this.suspended ? "suspended" : this.waiting.size > 0 && !busy ? "waiting" : "running";
  }

  suspend(reason: string): void {
    this.suspended = true;
    this.reason = reason;
    for (const s of this.steps.values()) {
      if (s.status === "running" || s.status === "retrying") s.status = "parked";
      if (s.status === "parked") close(s, this.at);
    }
  }

  goOn(): void {
    this.suspended = false;
    this.reason = "";
  }

  /** A fork goes on from what may have been the end of another run. */
  reopen(): void {
    this.over = false;
    this.goOn();
  }

  end(status: RunStatus, reason: string): void {
    this.over = true;
    this.status = status;
    this.reason = reason;
    this.waiting.clear();
    for (const s of this.steps.values()) {
      close(s, this.at);
      if (s.status === "running" || s.status === "retrying" || s.status === "waiting") s.status = "parked";
    }
  }
}

/** The state after the events up to seq, all of them by default. */
export function fold(entries: readonly Entry[], seq = entries.length): State {
  const s = new State();
  for (let i = 0; i < seq && i < entries.length; i++) s.apply(entries[i]!);
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

const num = (v: unknown): number => (typeof v === "number" ? v : 0);
const millis = (us: unknown): number => num(us) / 1000;

// Most events are these, and none of them changes where the run stands.
const quiet = new Set(["prompt", "thinking", "text", "tool_call", "tool_result", "usage", "sandbox", "message"]);

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
        edge: num(d["edge"]), via: textOf(d["via"]), prompt: d["edgePrompt"] as Text, resumes: cidOf(d["resumes"]),
        status: "running", record: null, attempt: 1, failures: [], first: e.seq, last: e.seq, lastAt: e.at,
        spans: [], ms: 0, toolCalls: 0, usage: {calls: 0, input: 0, cached: 0, output: 0}, said: "",
      };
      r.enter(s);
    }
    close(s, s.lastAt); // a process that was killed left it open: it ended with its newest event
    s.status = "running";
    s.record = null;
    s.attempt = Math.max(1, num(d["attempt"]));
    r.goOn();
    open(s, e.at, "work");
  },

  text(_r, e, s) {
    if (s) s.said = e.data["content"] as Text;
  },

  tool_call(r, _e, s) {
    r.toolCalls++;
    if (s) s.toolCalls++;
  },

  usage(r, e, s) {
    for (const u of s ? [r.usage, s.usage] : [r.usage]) {
      u.calls++;
      u.input += num(e.data["input"]);
      u.cached += num(e.data["cached"]);
      u.output += num(e.data["output"]);
    }
  },

  attempt_failed(_r, e, s) {
    if (!s) return;
    const err = (e.data["error"] ?? {}) as Record<string, unknown>;
    s.failures.push({attempt: num(e.data["attempt"]), code: textOf(err["code"]), message: textOf(err["message"])});
    s.status = num(e.data["retry_at"]) > 0 ? "retrying" : "parked";
    close(s, e.at);
  },

  step_completed(r, e, s) {
    if (!s) return;
    const status = textOf(e.data["status"]);
    s.status = status === "failed" || status === "skipped" ? status : "ok";
    s.record = cidOf(e.data["record"]);
    s.ms += num(e.data["ms"]);
    r.waiting.delete(s.id);
    close(s, e.at);
  },

  waiting(r, e, s) {
    if (!s) return;
    const d = e.data;
    r.waiting.set(s.id, {
      step: s.id, kind: textOf(d["kind"]), question: d["question"] as Text, choices: (d["choices"] as Choice[] | null) ?? [],
      form: d["form"] as Text, due: millis(d["due"]), since: e.at,
    });
    s.status = "waiting";
    open(s, e.at, "wait");
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

  limit_reached(r, e) {
    r.limits.set(textOf(e.data["limit"]), num(e.data["max"]));
  },

  limit_changed(r, e) {
    r.limits.delete(textOf(e.data["limit"]));
  },

  forked(r) {
    r.reopen();
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
  if (!s || !r.waiting.delete(s.id)) return;
  s.status = "running";
  open(s, e.at, "work");
}
