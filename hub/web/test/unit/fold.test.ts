import assert from "node:assert/strict";
import {test} from "node:test";
import {fold, State, way} from "../../src/model/fold.ts";
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
  assert.equal(end.newest("coder")?.id, "coder#2");
  assert.deepEqual(end.usage, {calls: 2, input: 2100, cached: 800, output: 70});
  assert.equal(end.toolCalls, 1);
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
