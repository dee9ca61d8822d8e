import assert from "node:assert/strict";
import {test} from "node:test";
import {diffLines} from "../../src/model/diff.ts";
import {Drafts} from "../../src/model/live.ts";
import {fieldsOf, valuesOf} from "../../src/model/schema.ts";
import {ago, dollars, headline, plain, share, shortCID, size, span, timingLine, tokens} from "../../src/model/text.ts";
import {failure} from "../../src/ui/said.ts";
import {journal} from "./journal.ts";

test("terminal escapes, control and reordering characters are taken out, text is not", () => {
  assert.equal(plain("\x1b[31mred\x1b[0m \x1b]0;title\x07ok\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "red oklink");
  assert.equal(plain("a\tb\r\nc\x00d\x08e\x7f\x9b1mf"), "a\tb\ncdef");
  assert.equal(plain("safe\u202Egnp.exe\u2066!"), "safegnp.exe!");
  assert.equal(plain("<b>bold</b> & `code` ✓ 👍🏽 עברית"), "<b>bold</b> & `code` ✓ 👍🏽 עברית");
});

test("a headline is one line, cut between characters", () => {
  assert.equal(headline("\n  one\ntwo"), "one");
  assert.equal(headline("👍👍👍👍", 3), "👍👍…");
});

test("figures are short and never lie", () => {
  assert.deepEqual([0, 999, 1000, 59_949, 59_951, 3_599_000, 7_500_000, 200_000_000].map(span), ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 m", "59 m 59 s", "2 h 5 m", "2 d 8 h"]);
  assert.deepEqual([0, 999, 1000, 999_949, 1_250_000, null].map(tokens), ["0", "999", "1.0k", "999.9k", "1.3M", "–"]);
  assert.deepEqual([0, 0.00001, 0.0042, 0.0425, 12.345, null].map(dollars), ["$0", "<$0.0001", "$0.0042", "$0.043", "$12.35", "unknown"]);
  assert.deepEqual([share(999, 1000), share(0, 10), share(5, 0), share(null, 10)], ["99%", "0%", "–", "–"]);
  assert.deepEqual([0, 1023, 1024, 1024 ** 2 - 1, 1024 ** 2, 5 * 1024 ** 3].map(size), ["0 B", "1023 B", "1.0 kB", "1024.0 kB", "1.0 MB", "5.0 GB"]);
  assert.equal(shortCID("bafyreia5opk7mljg73d6hz2tpmztpg63ap3tatcofoljffot7tuelvsot4"), "a5opk7ml");
});

test("K-12: the timing line is that of the seed", () => {
  const line = timingLine({total_ms: 106827, ttfe_ms: 5127, thinking_ms: 101195, tools_ms: 504, tool_calls: 1, ttfe_pct: 5, thinking_pct: 95, tools_pct: 0});
  assert.equal(line, "⏱ 106.8 s · 1 tools · TTFE 5% · Thinking 95% · Tools 0%");
});

test("a form has a field for each property, and its values have their types", () => {
  const fields = fieldsOf({
    type: "object", required: ["topic", "n"],
    properties: {tone: {enum: ["plain", "warm"], default: "plain"}, topic: {type: "string", description: "about what"}, n: {type: "integer", default: 3}, loud: {type: "boolean"}, list: {type: "array"}, rate: {type: "number"}},
  });
  assert.deepEqual(fields.map((f) => [f.name, f.kind, f.required, f.initial]), [
    ["topic", "text", true, ""], ["n", "integer", true, "3"], ["tone", "pick", false, '"plain"'], ["loud", "flag", false, ""], ["list", "json", false, ""], ["rate", "number", false, ""],
  ]);
  assert.deepEqual(valuesOf(fields, {topic: "tea", loud: "true", list: "[1]", rate: "0.5"}), {values: {topic: "tea", n: 3, tone: "plain", loud: true, list: [1], rate: 0.5}, faults: {}});
  assert.deepEqual(valuesOf(fields, {n: "2.5", list: "[", rate: "x"}).faults, {topic: "is required", n: "must be a whole number", list: "is not valid JSON", rate: "must be a number"});
  assert.deepEqual(fieldsOf(null), []);
});

test("the fields of a form are in the order in which they were written", () => {
  const properties = {age: {}, city: {}, name: {}, zip: {}}; // canonical JSON: by name
  const order = (schema: object) => fieldsOf({type: "object", properties, ...schema}).map((f) => f.name);
  assert.deepEqual(order({"x-order": ["zip", "name", "city", "age"], required: ["age"]}), ["zip", "name", "city", "age"]);
  assert.deepEqual(order({"x-order": ["who", "name"]}), ["name", "age", "city", "zip"]);
  assert.deepEqual(order({required: ["name", "city"]}), ["name", "city", "age", "zip"]);
});

test("a unified diff has its lines numbered on both sides", () => {
  const d = diffLines("--- a\n+++ b\n@@ -1,3 +1,3 @@\n same\n-old\n+new\n+more\n--- looks like a header\n\\ No newline at end of file\n");
  assert.deepEqual(d.map((l) => [l.kind, l.old, l.now, l.text]), [
    ["hunk", null, null, "@@ -1,3 +1,3 @@"], ["same", 1, 1, "same"], ["del", 2, null, "old"], ["add", null, 2, "new"], ["add", null, 3, "more"], ["del", 3, null, "-- looks like a header"],
  ]);
});

test("live text gives way to the text of the journal, and late pieces are dropped", () => {
  const [one] = journal([["text", "a#1", {content: "hello"}]]);
  const text = {...one!, seq: 9};
  const d = new Drafts();
  d.add({after: 8, step: "a#1", n: 1, kind: "thinking", text: "hm"});
  d.add({after: 8, step: "a#1", n: 2, kind: "text", text: "hel"});
  d.add({after: 8, step: "a#1", n: 3, kind: "text", text: "lo"});
  assert.deepEqual(d.of("a#1").map((x) => [x.kind, x.text]), [["thinking", "hm"], ["text", "hello"]]);
  d.settle(text);
  assert.deepEqual(d.of("a#1").map((x) => x.kind), ["thinking"]);
  d.add({after: 8, step: "a#1", n: 4, kind: "text", text: "!"});
  assert.deepEqual(d.of("a#1").map((x) => x.kind), ["thinking"]);
  d.add({after: 9, step: "a#1", n: 9, kind: "text", text: "next"});
  assert.equal(d.of("a#1").at(-1)!.text, " … next", "missed pieces show");
});

test("what was said before comes at once, and again after a disconnect", () => {
  const d = new Drafts();
  d.add({after: 8, step: "a#1", n: 40, kind: "thinking", text: "hm"}); // 40 pieces of it, joined
  d.add({after: 8, step: "a#1", n: 60, kind: "text", text: "hel"});
  d.add({after: 8, step: "a#1", n: 61, kind: "text", text: "lo"});
  assert.deepEqual(d.of("a#1").map((x) => x.text), ["hm", "hello"]);
  d.again();
  assert.deepEqual(d.of("a#1"), []);
  d.add({after: 8, step: "a#1", n: 40, kind: "thinking", text: "hm"});
  d.add({after: 8, step: "a#1", n: 70, kind: "text", text: "hello all"});
  d.add({after: 8, step: "a#1", n: 73, kind: "text", text: "?"});
  assert.deepEqual(d.of("a#1").map((x) => x.text), ["hm", "hello all … ?"]);
});

test("a failure is told with what was said last, once", () => {
  assert.equal(failure("exit status 2", "building\nmain.go:12:5: undefined\n"), "exit status 2 · main.go:12:5: undefined");
  assert.equal(failure('it begins with "I cannot."', "I cannot."), 'it begins with "I cannot."');
  assert.equal(failure("timed out", ""), "timed out");
  assert.equal(failure("exit status 1", "\n  only this  \n\n"), "exit status 1 · only this  ".trimEnd());
});

test("how long ago something was is a phrase of its own", () => {
  assert.deepEqual([-5, 1, 59, 61, 7200, 172_800].map((s) => ago(1000 * s)), ["now", "now", "59s ago", "1m ago", "2h ago", "2d ago"]);
});
