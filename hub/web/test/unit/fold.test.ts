import assert from "node:assert/strict";
import {test} from "node:test";
import {fold, State, way} from "../../src/model/fold.ts";
import type {Run, StepView} from "../../src/model/service.ts";
import {agree, stateOf} from "../../src/state/told.ts";
import {journal, start, type Said} from "./journal.ts";

const loop: Said[] = [
  ["run_started", "", {title: "Mend it"}],
  ["step_started", "test#1", start("test", {via: "start"})],
  ["step_completed", "test#1", {status: "ok", ms: 90, record: {"/": "r1"}}],
  ["step_started", "coder#1", start("coder", {edge: 2, edgePrompt: "Change it"})],
  ["prompt", "coder#1", {model: "script/x"}],
  ["tool_call", "coder#1", {call: "c1", name: "shell", args: "{}"}],
  ["usage", "coder#1", {input: 1000, cached: 800, output: 50}],
  ["tool_result", "coder#1", {call: "c1", content: "ok"}],
  ["text", "coder#1", {content: "done"}],
  ["usage", "coder#1", {input: 1100, cached: null, output: 20}],
  ["step_completed", "coder#1", {status: "ok", ms: 700, record: {"/": "r2"}}],
  ["step_started", "gate#1", start("gate", {edge: 4})],
  ["waiting", "gate#1", {kind: "choice", question: "Go on?", choices: [{label: "Yes", value: "y", primary: true}], form: null, due: 0}],
  ["answered", "gate#1", {by: "ann", choice: "y"}, 60_000],
  ["step_completed", "gate#1", {status: "ok", ms: 1, record: {"/": "r3"}}],
  ["step_started", "coder#2", start("coder", {visit: 2, edge: 5, resumes: {"/": "r2"}})],
  ["attempt_failed", "coder#2", {attempt: 1, error: {code: "server_error", message: "503"}, retry_at: 5}],
  ["step_started", "coder#2", start("coder", {visit: 2, edge: 5, attempt: 2})],
  ["step_completed", "coder#2", {status: "failed", ms: 300, record: {"/": "r4"}}],
  ["done", "", {status: "failed"}],
];

test("a run is what its events say, at each seq", () => {
  const j = journal(loop);
  const at = (seq: number) => fold(j, seq);
  assert.equal(at(1).title, "Mend it");
  assert.equal(at(1).status, "running");
  assert.equal(at(2).steps.get("test#1")?.status, "running");
  assert.equal(at(3).steps.get("test#1")?.record, "r1");
  assert.equal(at(9).steps.get("coder#1")?.said, "done");
  assert.equal(at(13).status, "waiting");
  assert.deepEqual([...at(13).waiting.keys()], ["gate#1"]);
  assert.equal(at(13).waiting.get("gate#1")?.choices[0]?.label, "Yes");
  assert.equal(at(14).status, "running");
  assert.equal(at(17).steps.get("coder#2")?.status, "retrying");
  assert.equal(at(18).steps.get("coder#2")?.attempt, 2);
  const end = at(20);
  assert.equal(end.status, "failed");
  assert.ok(end.final);
  assert.equal(end.steps.get("coder#2")?.resumes, "r2");
  assert.equal(end.visits("coder"), 2);
  assert.equal(end.newest("coder"), "failed");
  assert.deepEqual(end.usage, {calls: 2, input: 2100, cached: 800, output: 70});
  assert.equal(end.steps.get("coder#1")?.toolCalls, 1);
});

test("the fold of a prefix goes on to the fold of the whole, wherever it is cut", () => {
  const j = journal(loop);
  const whole = JSON.stringify(plainly(fold(j)));
  for (let cut = 0; cut <= j.length; cut++) {
    const s = fold(j, cut);
    for (const e of j.slice(cut)) s.apply(e);
    assert.equal(JSON.stringify(plainly(s)), whole, `cut at ${cut}`);
  }
});

function plainly(s: State): unknown {
  return {...s, steps: [...s.steps], taken: [...s.taken], waiting: [...s.waiting], limits: [...s.limits]};
}

test("a visit's work and its waiting are different stretches", () => {
  const spans = fold(journal(loop), 14).steps.get("gate#1")!.spans;
  assert.deepEqual(spans.map((s) => s.kind), ["work", "wait", "work"]);
  assert.equal(spans[1]!.to! - spans[1]!.from, 60_000);
  assert.equal(spans[2]!.to, null);
});

test("a visit that a kill cut off ends with its newest event, not with its next try", () => {
  const s = fold(journal([
    ["run_started"],
    ["step_started", "a#1", start("a")],
    ["text", "a#1", {content: "half"}],
    ["step_started", "a#1", start("a", {attempt: 2}), 3_600_000],
  ]));
  const spans = s.steps.get("a#1")!.spans;
  assert.equal(spans.length, 2);
  assert.equal(spans[0]!.to! - spans[0]!.from, 100);
  assert.equal(s.taken.get(way(0, "a", false)), 1, "a second try is not a second visit");
});

test("a suspended run parks what ran, and goes on after a resume", () => {
  const said: Said[] = [
    ["run_started"], ["step_started", "a#1", start("a")], ["suspended", "", {reason: "limit", detail: "tokens"}], ["resumed"], ["step_started", "a#1", start("a")],
  ];
  const j = journal(said);
  assert.equal(fold(j, 3).status, "suspended");
  assert.equal(fold(j, 3).reason, "tokens", "what the server calls the reason");
  assert.equal(fold(j, 3).steps.get("a#1")?.status, "parked");
  assert.equal(fold(j, 4).status, "running");
  assert.equal(fold(j).steps.get("a#1")?.status, "running");
});

test("a limit is reached until it is raised", () => {
  const j = journal([["run_started"], ["limit_reached", "", {limit: "tokens", value: 12, max: 10}], ["limit_changed", "", {limit: "tokens", max: 20}]]);
  assert.deepEqual([...fold(j, 2).limits], [["tokens", 10]]);
  assert.deepEqual([...fold(j).limits], []);
});

test("a fan-out is one visit by one edge, and the way to a limit is another way", () => {
  const s = fold(journal([
    ["run_started"],
    ["step_started", "a#1[0]", start("a", {edge: 3, item: {index: 0, value: null}})],
    ["step_started", "a#1[1]", start("a", {edge: 3, item: {index: 1, value: null}})],
    ["step_started", "b#1", start("b", {edge: 3, via: "limit"})],
  ]));
  assert.deepEqual([...s.taken], [[way(3, "a", false), 1], [way(3, "b", true), 1]]);
  assert.equal(s.visits("a"), 1);
  assert.equal(s.visits("b"), 1);
  assert.equal(s.steps.size, 3);
});

test("unknown types, unknown steps and missing fields change nothing else", () => {
  const s = fold(journal([
    ["run_started"], ["invented", "", {x: 1}], ["step_completed", "ghost#1", {}], ["text", "ghost#1", {content: "boo"}], ["usage", "", {}], ["waiting", "ghost#1", {}],
  ]));
  assert.equal(s.seq, 6);
  assert.equal(s.status, "running");
  assert.equal(s.steps.size, 0);
  assert.equal(s.usage.calls, 1);
});

test("a fork of a finished run goes on", () => {
  const j = journal([["run_started"], ["step_started", "a#1", start("a")], ["step_completed", "a#1", {status: "ok"}], ["done", "", {status: "done"}], ["forked"], ["step_started", "a#2", start("a")]]);
  assert.equal(fold(j, 4).status, "done");
  assert.equal(fold(j).status, "running");
  assert.equal(fold(j).final, false);
});

// What the server would tell of a run at a seq, with no more than so many of its steps.
function tell(s: State, room: number): Run {
  const all = [...s.steps.values()];
  const steps = all.slice(Math.max(0, all.length - room));
  const lacking = all.length > steps.length;
  const usage = (u: typeof s.usage) => ({...u, cache_write_5m: null, cache_write_1h: null, reasoning: null});
  return {
    schema: "wf.run/v1", timing: {total_ms: 0, ttfe_ms: 0, thinking_ms: 0, tools_ms: 0, tool_calls: 0, ttfe_pct: 0, thinking_pct: 0, tools_pct: 0},
    id: "R", workflow: "w", definition: "d", head: s.cid, seq: s.seq, status: s.status, reason: s.reason, result: null, outputs: {}, cost_usd: null, active_ms: 0, wall_ms: 0, scripted_calls: 0,
    started: new Date(s.began).toISOString(), updated: new Date(s.at).toISOString(), usage: usage(s.usage),
    info: {title: s.title, description: "", type: "", scope: "", tags: null, created_by: "", target_user: "", request_id: "", workspace: "", file: "", parent: null, forked_from: null, inputs: {}},
    waiting: [...s.waiting.values()].map((q) => ({step: q.step, kind: q.kind, question: String(q.question), choices: q.choices, due: null})),
    steps: steps.map((x) => ({
      id: x.id, role: x.role, action: "prompt", visit: x.visit, edge: x.edge, via: x.via, began: x.first, ...(x.record ? {ended: x.last} : {}), cid: x.record, status: x.status as StepView["status"], parents: [],
      resumes: x.resumes, edge_prompt: "", output: {}, text: "", error: null, tool_calls: x.toolCalls, usage: usage(x.usage), ms: x.ms, workspace: null,
      attempts: Array.from({length: x.attempt}, (_, i) => ({attempt: i + 1, started: new Date(s.began).toISOString(), error: x.failures[i] ? {phase: "", ...x.failures[i]} : null, usage: usage(x.usage)})),
    })),
    ...(lacking ? {
      steps_total: all.length, earlier: steps[0]?.first ?? s.seq + 1,
      roles: [...new Set(all.map((x) => x.role))].map((role) => ({role, visits: s.visits(role), status: s.newest(role)! as StepView["status"]})),
      ways: [...s.taken].map(([key, times]) => {
        const [edge, kind, to] = key.split(" ");
        return {edge: Number(edge), to: to!, limit: kind === "limit", times};
      }),
    } : {}),
  };
}

const sums = (s: State) => ({
  status: s.status, final: s.final, count: s.count, usage: s.usage, taken: new Map([...s.taken].sort()), waiting: [...s.waiting.keys()], title: s.title, began: s.began, seq: s.seq,
  roles: ["test", "coder", "gate"].map((r) => [r, s.visits(r), s.newest(r)]),
});

test("what the server tells of a run goes on to what the whole journal tells, wherever it is cut and however few steps it has", () => {
  const j = journal(loop);
  for (let cut = 1; cut <= j.length; cut++) {
    for (const room of [0, 1, 2, 10]) {
      if ([...fold(j, cut).steps.values()].slice(0, -room || undefined).some((x) => !x.record)) continue; // of such a step the server is asked again
      const s = stateOf(tell(fold(j, cut), room));
      for (let seq = cut; seq <= j.length; seq++) {
        if (seq > cut) s.apply(j[seq - 1]!);
        assert.deepEqual(sums(s), sums(fold(j, seq)), `cut at ${cut}, ${room} steps, at ${seq}`);
      }
    }
  }
});

test("a late part of the journal tells exactly what its steps did, and leaves the sums as they are", () => {
  const j = journal(loop);
  const s = stateOf(tell(fold(j, 18), 2));
  assert.deepEqual([...s.steps.keys()], ["gate#1", "coder#2"]);
  assert.deepEqual([s.count, s.earlier], [4, 12]);
  assert.deepEqual(s.steps.get("gate#1")?.spans, [], "when it was at work is not known");
  s.adopt(fold(j, 18, new State(11)));
  assert.deepEqual(s.steps.get("gate#1"), fold(j, 18).steps.get("gate#1"));
  assert.deepEqual(sums(s), sums(fold(j, 18)));
  s.adopt(fold(j, 18, new State(17)));
  assert.equal(s.steps.get("coder#2")?.first, 16, "a part that has only its second try knows less");
  s.prepend([...fold(j, 10).steps.values()], 0);
  assert.deepEqual([[...s.steps.keys()], s.count], [["test#1", "coder#1", "gate#1", "coder#2"], 4]);
});

test("the server's word holds where events tell little of steps that are lacking", () => {
  const j = journal(loop);
  const s = stateOf(tell(fold(j, 12), 0));
  s.apply(j[12]!);
  assert.deepEqual([...s.waiting.keys()], []);
  agree(s, tell(fold(j, 13), 0));
  assert.deepEqual([...s.waiting.keys()], ["gate#1"]);
  s.apply(j[13]!);
  assert.deepEqual([...s.waiting.keys()], [], "an answer is one, whatever step asked");
});

test("a run and a step wait for a slot of a group", () => {
  const said: Said[] = [
    ["run_started"], ["queued", "", {group: "g", ticket: 2, behind: ["R1"]}], ["admitted", "", {group: "g", ticket: 2}],
    ["step_started", "a#1", start("a")], ["group_waiting", "a#1", {group: "h", ticket: 1}], ["group_entered", "a#1", {group: "h", ticket: 1}],
  ];
  const j = journal(said);
  assert.equal(fold(j, 2).status, "queued");
  assert.equal(fold(j, 2).reason, "waits for the group g, behind run R1");
  assert.equal(fold(j, 3).status, "running");
  assert.equal(fold(j, 3).reason, "");
  assert.equal(fold(j, 5).steps.get("a#1")?.status, "queued");
  assert.equal(fold(j, 5).status, "running");
  assert.equal(fold(j).steps.get("a#1")?.status, "running");
});

test("a run that closes asks nothing more, and what it ends as is known", () => {
  const closes: Said[] = [
    ["run_started", "", {title: "Deploy"}],
    ["step_started", "gate#1", start("gate")],
    ["waiting", "gate#1", {kind: "choice", question: "Go on?", choices: [], form: null, due: 0}],
    ["closing", "", {status: "cancelled", message: "wrong branch", by: "ann"}],
    ["step_started", "unlock#1", start("unlock", {edge: -1, via: "always"})],
    ["suspended", "", {reason: "interrupt"}],
    ["resumed", "", {by: "ann"}],
    ["step_completed", "unlock#1", {status: "failed", ms: 5, record: {"/": "r1"}}],
    ["cancelled", "", {by: "ann", reason: "wrong branch"}],
  ];
  const j = journal(closes);
  const at = (seq: number) => fold(j, seq);
  assert.equal(at(3).status, "waiting");
  const closing = at(4);
  assert.deepEqual([closing.status, closing.closing, closing.reason, closing.final], ["running", "cancelled", "wrong branch", false]);
  assert.equal(closing.waiting.size, 0);
  assert.equal(closing.steps.get("gate#1")?.status, "parked");
  assert.equal(at(5).steps.get("unlock#1")?.status, "running");
  assert.equal(at(5).taken.size, 1); // no edge leads to an always role
  assert.deepEqual([at(6).status, at(6).closing], ["suspended", "cancelled"]);
  assert.deepEqual([at(7).status, at(7).reason], ["running", "wrong branch"]);
  const end = at(9);
  assert.deepEqual([end.status, end.closing, end.final], ["cancelled", "", true]);
  assert.equal(end.steps.get("unlock#1")?.status, "failed");
});

test("the newest visit of a fan-out stands as the item that tells most, and is not called well while items are lacking", () => {
  const fan = (statuses: string[]) => journal([
    ["run_started", "", {title: ""}],
    ...statuses.flatMap((_, i): Said[] => [["step_started", `a#1[${i}]`, start("a", {item: {index: i, value: null}})]]),
    ...statuses.flatMap((status, i): Said[] => (status === "running" ? [] : [["step_completed", `a#1[${i}]`, {status, ms: 1, record: {"/": `r${i}`}}]])),
  ]);
  assert.equal(fold(fan(["ok", "ok"])).newest("a"), "ok");
  assert.equal(fold(fan(["ok", "failed", "ok"])).newest("a"), "failed");
  assert.equal(fold(fan(["failed", "running", "ok"])).newest("a"), "running");
  const late = (status: string, earlier: number) => {
    const s = fold(fan([status, "ok"]));
    s.earlier = earlier;
    return s.newest("a");
  };
  assert.equal(late("ok", 7), undefined);
  assert.equal(late("failed", 7), "failed");
  assert.equal(late("ok", 0), "ok");
});
