import assert from "node:assert/strict";
import {describe, test} from "node:test";
import {fansOf, itemsOf, linesOf, openedAtFirst, type Line} from "../../src/model/fans.ts";
import type {Step} from "../../src/model/fold.ts";
import type {FanTally} from "../../src/model/service.ts";

const step = (id: string, status: Step["status"]): Step => ({id, role: id.split("#")[0], item: id.includes("[") ? Number(/\[(\d+)/.exec(id)![1]) : null, status, first: 1, last: 2, record: status === "ok" || status === "unread" ? id : null} as Step);
const statusOf = (s: Step) => s.status;
const names = (lines: Line[]) => lines.map((l) => l.fan ? `${l.fan.id}(${l.fan.counts.map(([s, n]) => `${n} ${s}`).join(", ")})` : l.step.id);
const many = (n: number, bad: number[]) => Array.from({length: n}, (_, i) => step(`check#1[${i}]`, bad.includes(i) ? "failed" : "ok"));

describe("fan-outs in a list", () => {
  test("the items of a visit are one line, which counts them, what went wrong first", () => {
    const all = [step("list#1", "ok"), ...many(1000, [3, 999]), step("tell#1", "running")];
    const fans = fansOf(all, statusOf, false, 9);
    assert.deepEqual(names(linesOf(all, fans, new Map(), "", statusOf)), ["list#1", "check#1(2 failed, 998 ok)", "check#1[3]", "check#1[999]", "tell#1"]);
    assert.deepEqual(names(linesOf(all, fans, new Map([["check#1", ""]]), "check#1[7]", statusOf)), ["list#1", "check#1(2 failed, 998 ok)", "check#1[7]", "tell#1"], "the chosen one is seen in a closed one");
    assert.equal(linesOf(all, fans, new Map([["check#1", "all"]]), "", statusOf).length, 1003);
    assert.equal(linesOf(all, fans, new Map([["check#1", "ok"]]), "", statusOf).length, 1001);
  });

  test("at first few items are shown, and many where they failed", () => {
    const first = (n: number, bad: number[]) => openedAtFirst(fansOf(many(n, bad), statusOf, false, 9).get("check#1")!);
    assert.equal(first(11, []), "all");
    assert.equal(first(12, [1]), "all");
    assert.equal(first(13, []), "");
    assert.equal(first(13, [1]), "failed");
  });

  test("items of which the first were not read may not be all", () => {
    const of = (all: Step[], earlier: boolean) => [...fansOf(all, statusOf, earlier, 9).values()].map(itemsOf);
    assert.deepEqual(of([step("check#1[1]", "ok"), step("tell#1", "ok"), step("check#2[0]", "ok")], true), ["1 item read", "1 item"]);
    assert.deepEqual(of([step("a#1[1]", "ok"), step("b#1[0]", "ok"), step("tell#1", "ok")], true), ["1 item read", "1 item read"], "two may have begun side by side");
    assert.deepEqual(of([step("tell#1", "ok"), step("check#1[0]", "ok"), step("check#1[1]", "ok")], true), ["2 items"]);
    assert.deepEqual(of([step("check#1[1]", "ok")], false), ["1 item"]);
  });

  test("items that were not read are counted as the server says, and have their place before what was read", () => {
    const read = [step("check#1[40]", "failed"), step("check#2[0]", "ok"), step("tell#1", "ok")];
    const told: FanTally[] = [{id: "check#1", began: 4, items: 99, states: {failed: 6, ok: 50, cut_off: 1, held: 2, running: 3}}, {id: "other#1", began: 5, items: 3, states: {ok: 3}}, {id: "check#2", began: 6, items: 1, states: {running: 1}}];
    const fans = fansOf(read, statusOf, true, 9, {seq: 9, fans: told});
    assert.deepEqual(names(linesOf(read, fans, new Map(), "", statusOf)), ["other#1(3 ok)", "check#1(6 failed, 5 running, 51 ok)", "check#1[40]", "check#2(1 ok)", "check#2[0]", "tell#1"], "of what was read in full, what is known counts");
    assert.deepEqual([...fans.values()].map((f) => `${itemsOf(f)}${f.partial}`), ["62 itemsfalse", "1 itemfalse", "3 itemsfalse"]);
    assert.deepEqual(fansOf(read, statusOf, true, 9, {seq: 9, fans: told}, true).get("check#1")!.counts, [["failed", 6], ["interrupted", 5], ["ok", 51]]);
  });

  test("items of which nothing was read are neither ok nor not: the server counts them, those that ended since are ended", () => {
    const ended = (id: string, last: number) => ({...step(id, "unread"), last});
    const all = [ended("check#1[0]", 3), ended("check#1[1]", 5), step("check#1[2]", "ok"), ended("check#1[3]", 8), step("check#1[4]", "running")];
    const counts = (...tally: [number, Record<string, number>][]) => fansOf(all, statusOf, false, 9, ...tally.map(([seq, states]) => ({seq, fans: [{id: "check#1", began: 2, items: 9, states}]}))).get("check#1")!;
    assert.deepEqual(counts().counts, [["running", 1], ["unread", 3], ["ok", 1]]);
    assert.deepEqual(counts([6, {nonzero: 1, ok: 2, running: 2}]).counts, [["nonzero", 1], ["running", 1], ["unread", 1], ["ok", 2]]);
    assert.deepEqual(counts([9, {nonzero: 1, failed: 1, cut_off: 1, ok: 1, running: 1}]).counts, [["failed", 1], ["nonzero", 1], ["running", 1], ["ok", 2]]);
    assert.deepEqual(counts([6, {nonzero: 2, ok: 1, running: 1, retrying: 1}]).counts, [["nonzero", 2], ["running", 1], ["unread", 1], ["ok", 1]]);
    assert.deepEqual(counts([6, {nonzero: 1, ok: 1, running: 3}]).counts, [["running", 1], ["unread", 3], ["ok", 1]], "one that had ended has begun again");
    const lacks = counts([20, {nonzero: 4, ok: 3, running: 2}]);
    assert.deepEqual([lacks.counts, lacks.seq, lacks.of], [[["nonzero", 4], ["running", 2], ["ok", 3]], 20, 9], "with items that were not read, the counts of the server");
  });

  test("visits of one role are told apart, and items are in their order", () => {
    const all = [step("check#1[1]", "ok"), step("check#1[0]", "ok"), step("check#2[0]", "running")];
    assert.deepEqual(names(linesOf(all, fansOf(all, statusOf, false, 9), new Map(), "", statusOf)), ["check#1(2 ok)", "check#1[0]", "check#1[1]", "check#2(1 running)", "check#2[0]"]);
  });
});
