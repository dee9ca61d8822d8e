import assert from "node:assert/strict";
import {test} from "node:test";
import {before, Journal} from "../../src/model/journal.ts";
import {entryOf} from "../../src/model/wire.ts";
import {frameOf, journal, type Said} from "./journal.ts";

const ten: Said[] = Array.from({length: 10}, (_, i) => ["text", "a#1", {content: String(i)}]);

test("an event is taken if it continues the chain, and only then", () => {
  const [one, two, three] = journal(ten);
  const other = journal(ten, "x");
  const j = new Journal();
  assert.equal(j.offer(two!), "ahead");
  assert.equal(j.offer(one!), "next");
  assert.equal(j.offer(one!), "known");
  assert.equal(j.offer(three!), "ahead");
  assert.equal(j.offer(other[0]!), "other", "the same seq, another event");
  assert.equal(j.offer(other[1]!), "other", "the next seq, another history");
  assert.equal(j.offer(two!), "next");
  assert.equal(j.seq, 2);
  assert.equal(j.cid, "cid2");
});

test("a journal is cut where both histories part", () => {
  const j = new Journal();
  for (const e of journal(ten)) j.offer(e);
  j.truncate(6, "cid6");
  assert.equal(j.seq, 6);
  assert.equal(j.cid, "cid6");
  j.truncate(9);
  assert.equal(j.seq, 6, "it never grows by a cut");
  j.truncate(4, "cid-of-nobody");
  assert.equal(j.seq, 0, "a common event that is not ours means that nothing is common");
});

test("a journal may begin late, and what came before is filled in later, in windows", () => {
  const all = journal(ten);
  const j = new Journal(6);
  assert.equal(j.seq, 6);
  assert.equal(j.offer(all[7]!), "ahead");
  for (const e of all.slice(6)) assert.equal(j.offer(e), "next");
  assert.equal(j.offer(all[2]!), "other", "what is early is not offered");
  assert.equal(j.at(6), undefined);
  assert.deepEqual(j.parts(), [[7, 10]]);
  assert.deepEqual([j.start(10), j.start(6), j.missing(1, 10), j.missing(8, 10)], [7, 7, 6, 0]);

  assert.ok(j.fill(all.slice(0, 2)));
  assert.deepEqual(j.parts(), [[1, 2], [7, 10]]);
  assert.ok(j.fill(all.slice(2, 6)));
  assert.deepEqual(j.parts(), [[1, 10]]);
  assert.equal(j.missing(1, 10), 0);
  assert.deepEqual(j.entries, all);
});

test("a window of another history, with a hole or beyond the end is not taken", () => {
  const all = journal(ten);
  const held = () => {
    const j = new Journal(4);
    for (const e of all.slice(4, 9)) j.offer(e);
    return j;
  };
  for (const [what, part] of Object.entries({
    "another end": journal(ten, "x").slice(0, 4), "a hole": [all[0]!, all[2]!], "another event within": [all[0]!, {...all[1]!, prev: "foreign"}],
    "beyond the end": [all[9]!], "nothing": [],
  })) {
    const j = held();
    assert.equal(j.fill(part), false, what);
    assert.deepEqual(j.parts(), [[5, 9]], what);
  }
  const j = held();
  assert.ok(j.fill(all.slice(0, 2)));
  assert.equal(j.fill([{...all[2]!, prev: "foreign"}, all[3]!]), false, "another beginning");
});

test("the windows of a journal do not overlap", () => {
  assert.deepEqual([0, 1, 500, 501, 1000, 1001].map(before), [0, 0, 0, 500, 500, 1000]);
});

test("a frame without seq, cid or event is none", () => {
  const [one] = journal(ten);
  assert.deepEqual(entryOf(frameOf(one!)), one);
  assert.equal(entryOf({type: "event"}), null);
  assert.equal(entryOf({seq: 1, cid: "c", event: null}), null);
  assert.equal(entryOf({seq: "1", cid: "c", event: {}}), null);
});
