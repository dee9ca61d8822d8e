// The state of a run as the server tells it: where the fold of its events begins when they are not
// all there.

import {State, way, type Question, type Step} from "../model/fold.ts";
import type {Run, StepView, Usage, Waiting} from "../model/service.ts";

/** The state at v.seq. It has the steps of v, and the sums over all of them. */
export function stateOf(v: Run): State {
  const s = new State();
  for (const x of v.steps) s.enter(stepOf(x, v.seq));
  agree(s, v);
  for (const w of v.ways ?? []) s.taken.set(way(w.edge, w.to, w.limit ?? false), w.times);
  s.usage = sums(v.usage);
  s.begin({
    seq: v.seq, cid: v.head, at: Date.parse(v.updated), began: Date.parse(v.started), title: v.info.title,
    status: v.status, closing: v.closing ?? "", reason: v.reason, earlier: v.earlier ?? 0,
  });
  return s;
}

/** Takes over what the server tells of a run at the seq of s: of steps that s lacks, events tell little. */
export function agree(s: State, v: Run): void {
  s.count = v.steps_total ?? v.steps.length;
  for (const r of v.roles ?? []) s.enteredSoFar(r.role, r.visits, r.status);
  const waiting = v.waiting ?? [];
  for (const step of s.waiting.keys()) if (!waiting.some((w) => w.step === step)) s.waiting.delete(step);
  for (const w of waiting) if (!s.waiting.has(w.step)) s.waiting.set(w.step, questionOf(w));
}

function questionOf(w: Waiting): Question {
  return {
    step: w.step, kind: w.kind, question: w.question, choices: w.choices ?? [], form: w.form ? JSON.stringify(w.form) : "",
    due: w.due ? Date.parse(w.due) : 0, since: 0, shown: w.shown ?? "",
    assignees: w.assignees ?? [],
  };
}

/** A step as it was at seq. When it was at work is known only while it is. */
export function stepOf(v: StepView, seq: number): Step {
  const newest = v.attempts.at(-1);
  const open = v.status === "running" || v.status === "waiting";
  const from = Date.parse(newest?.started ?? "");
  return {
    id: v.id, role: v.role, visit: v.visit, item: v.item ?? null, edge: v.edge, via: v.via, prompt: v.edge_prompt, resumes: v.resumes,
    status: v.status, record: v.cid, attempt: newest?.attempt ?? 1,
    failures: v.attempts.flatMap((a) => (a.error ? [{attempt: a.attempt, code: a.error.code, message: a.error.message}] : [])),
    first: v.began ?? 0, last: v.ended ?? seq, lastAt: from, spans: open ? [{from, to: null, kind: v.status === "waiting" || v.held ? "wait" : "work"}] : [],
    ms: v.ms, toolCalls: v.tool_calls, usage: sums(v.usage), said: v.text, held: v.held ?? "",
  };
}

function sums(u: Usage): {calls: number; input: number; cached: number; output: number} {
  return {calls: u.calls, input: u.input ?? 0, cached: u.cached ?? 0, output: u.output ?? 0};
}
