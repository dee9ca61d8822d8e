import assert from "node:assert/strict";
import {test} from "node:test";
import {Journal} from "../../src/model/journal.ts";
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

test("a frame without seq, cid or event is none", () => {
  const [one] = journal(ten);
  assert.deepEqual(entryOf(frameOf(one!)), one);
  assert.equal(entryOf({type: "event"}), null);
  assert.equal(entryOf({seq: 1, cid: "c", event: null}), null);
  assert.equal(entryOf({seq: "1", cid: "c", event: {}}), null);
});
