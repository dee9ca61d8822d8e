import assert from "node:assert/strict";
import {test} from "node:test";
import {pairs, values} from "../../src/model/beside.ts";
import type {StepView} from "../../src/model/service.ts";

const step = (id: string, cid: string | null) => ({id, cid} as StepView);

test("steps of two runs stand beside each other, those of one alone where they came", () => {
  const left = [step("a#1", "A"), step("b#1", "B"), step("c#1", "C")];
  const right = [step("x#1", "X"), step("a#1", "A"), step("b#1", "other"), step("b#2", "B2"), step("d#1", null)];
  assert.deepEqual(pairs(left, right).map((p) => [p.id, p.left?.cid, p.right?.cid, p.same]), [
    ["x#1", undefined, "X", false], ["a#1", "A", "A", true], ["b#1", "B", "other", false], ["b#2", undefined, "B2", false], ["d#1", undefined, null, false], ["c#1", "C", undefined, false],
  ]);
  assert.equal(pairs([step("a#1", null)], [step("a#1", null)])[0]!.same, false, "what has no record yet is not the same");
});

test("values of both are listed once", () => {
  assert.deepEqual(values({a: 1, b: [1]}, {b: [1], c: null}).map((v) => [v.name, v.same]), [["a", false], ["b", true], ["c", false]]);
});
