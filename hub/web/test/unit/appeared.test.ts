import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";
import {appeared} from "../../src/model/appeared.ts";

interface Case {appeared: unknown; text: string}

test("what appeared is said as at the terminal", () => {
  const cases = JSON.parse(readFileSync("../../protocol/testdata/appeared.json", "utf8")) as Case[];
  assert.ok(cases.length > 4);
  for (const c of cases) assert.equal(appeared({appeared: c.appeared}), c.text);
  assert.equal(appeared({}), "");
});
