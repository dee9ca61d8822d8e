import assert from "node:assert/strict";
import {test} from "node:test";
import {compress, merge, rows, ticks} from "../../src/model/timeline.ts";

test("stretches that overlap or touch become one", () => {
  assert.deepEqual(merge([{from: 5, to: 9}, {from: 0, to: 3}, {from: 3, to: 4}, {from: 7, to: 12}, {from: 2, to: 2}], 1, 11), [{from: 1, to: 4}, {from: 5, to: 11}]);
});

test("a weekend of waiting is short, and the work keeps its proportions", () => {
  const day = 86_400_000;
  const axis = compress(0, 2 * day, [{from: 0, to: 10_000}, {from: 2 * day - 30_000, to: 2 * day}]);
  const [first, gap, last] = axis.pieces;
  assert.equal(axis.gaps.length, 1);
  assert.ok(gap!.gap && gap!.end - gap!.begin < 0.06);
  assert.ok(Math.abs((last!.end - last!.begin) / (first!.end - first!.begin) - 3) < 1e-9);
});

test("many gaps leave most of the room to the work", () => {
  const busy = Array.from({length: 100}, (_, i) => ({from: i * 1_000_000, to: i * 1_000_000 + 1000}));
  const axis = compress(0, 100_000_000, busy);
  const idle = axis.gaps.reduce((sum, g) => sum + g.end - g.begin, 0);
  assert.ok(idle < 0.34, String(idle));
});

test("a place and its time are inverse, and the order is kept", () => {
  const axis = compress(1000, 1_000_000, [{from: 1500, to: 9000}, {from: 700_000, to: 702_000}, {from: 701_000, to: 705_000}]);
  let before = -1;
  for (let t = 1000; t <= 1_000_000; t += 997) {
    const p = axis.place(t);
    assert.ok(p >= before && p >= 0 && p <= 1);
    assert.ok(Math.abs(axis.time(p) - t) < 1e-3, `${t} → ${p} → ${axis.time(p)}`);
    before = p;
  }
  assert.equal(axis.place(0), 0);
  assert.equal(axis.place(2_000_000), 1);
  assert.equal(axis.time(1), 1_000_000);
});

test("an axis without work, or of no length, is no fault", () => {
  assert.equal(compress(0, 5000, []).place(2500), 0.5);
  assert.equal(compress(7, 7, []).place(7), 0);
  assert.equal(compress(7, 7, []).time(0.5), 0);
});

test("what overlaps stands in different rows, and rows are used again", () => {
  assert.deepEqual(rows([{from: 0, to: 5}, {from: 1, to: 3}, {from: 3, to: 6}, {from: 5, to: 9}]), [0, 1, 1, 0]);
});

test("ticks stand at round times, apart from each other, and not in gaps", () => {
  assert.deepEqual(ticks(compress(1000, 11_000, [{from: 1000, to: 11_000}]), 5).map((t) => [t.after, t.place]), [[0, 0], [2000, 0.2], [4000, 0.4], [6000, 0.6], [8000, 0.8]]);
  const hour = 3_600_000;
  const axis = compress(0, 3 * hour, [{from: 0, to: 9000}, {from: 3 * hour - 7000, to: 3 * hour}]);
  const marks = ticks(axis, 8);
  const [gap] = axis.gaps;
  assert.ok(marks.every((t) => t.place <= gap!.begin || t.place >= gap!.end));
  assert.ok(marks.some((t) => t.after > 2 * hour) && marks.some((t) => t.after === 5000));
  for (let i = 1; i < marks.length; i++) assert.ok(marks[i]!.place - marks[i - 1]!.place > 0.05, JSON.stringify(marks));
  assert.deepEqual(ticks(compress(7, 7, []), 8), []);
});

test("what is not held has a part of the axis, each as its events, and a place in it has a seq", () => {
  const axis = compress(0, 10_000, [{from: 0, to: 10_000}], [{from: 1000, to: 3000, first: 11, last: 40}, {from: 5000, to: 9000, first: 61, last: 70}]);
  const [one, two] = axis.holes;
  assert.equal(axis.holes.length, 2);
  assert.ok(Math.abs(one!.end - one!.begin + two!.end - two!.begin - 0.25) < 1e-9);
  assert.ok(Math.abs((one!.end - one!.begin) / (two!.end - two!.begin) - 3) < 1e-9);
  const within = (p: typeof one, part: number) => axis.missing(p!.begin + part * (p!.end - p!.begin));
  assert.deepEqual([within(one, 0.001), within(one, 0.5), within(one, 1), within(two, 0.001), within(two, 1)], [11, 25, 40, 61, 70]);
  assert.deepEqual([0, 0.9999].map((p) => axis.missing(p)), [0, 0]);
  let last = -1;
  for (let t = 0; t <= 10_000; t += 97) {
    const p = axis.place(t);
    assert.ok(p > last && Math.abs(axis.time(p) - t) < 1e-3);
    last = p;
  }
  assert.ok(ticks(axis, 20).every((t) => axis.missing(t.place + 1e-9) === 0));
  const all = compress(0, 1000, [], [{from: 0, to: 1000, first: 1, last: 9}]);
  assert.deepEqual([all.missing(0), all.missing(1)], [1, 9]);
});
