// The page of a store in a database, which is lost and comes back as another server.
import assert from "node:assert/strict";
import {test} from "node:test";
import {begin, get, on, open, seq, status} from "./bench.mjs";
import {Pair, programs} from "./postgres.mjs";
import {journal, openPage, Place, Server, shot, until} from "./stage.mjs";

test("a run is followed while its database is lost and the standby takes its place", async (t) => {
  const bin = await programs();
  if (!bin && process.env.CI !== "true") return t.skip("there is no PostgreSQL in /usr/lib/postgresql");
  const pair = await Pair.start(t, bin);
  const place = await Place.make();
  t.after(() => place.close());
  place.env.WF_STORE = pair.address;
  await place.wf("store", "init");
  const server = await Server.start(place);
  const {page, check, close} = await openPage(on.browser, server.url);
  t.after(close);
  await page.goto(await server.login());
  await page.getByRole("heading", {name: "Runs"}).waitFor();
  await place.hold(t);
  const id = await begin(page, "draft", {topic: "storms"});
  await open(page, id);
  await page.locator('[data-draft="stdout"]').getByText("still about storms").waitFor();
  await page.evaluate(() => (window.sameDocument = true));
  const before = await seq(page);
  await pair.lose();
  await place.release(); // the step ends while there is no database; its result waits
  await until("the server misses its database", async () => !(await fetch(server.url + "/readyz")).ok);
  await page.locator('[data-store="away"]').waitFor();
  await shot(page, "database-lost");
  assert.ok((await seq(page)) >= before, "what was seen stays");
  await pair.promote();
  await page.locator('[data-waiting="editor#1"]').getByRole("button", {name: "Publish it"}).click({timeout: 60_000});
  await page.locator('[data-store="there"]').waitFor();
  await status(page, "done");
  assert.equal(await page.evaluate(() => window.sameDocument), true, "it was not loaded again");
  const run = await get(page, `/v1/runs/${id}`);
  assert.equal(await seq(page), run.seq);
  const stored = (await place.wf("replay", id, "-o", "jsonl")).trim().split("\n").map((l) => JSON.parse(l));
  assert.deepEqual(await journal(page, stored.length), stored.map((e) => [e.seq, e.type]));
  await place.wf("verify", "--all");
  check(/50[034]|ERR_CONNECTION|WebSocket connection|ERR_EMPTY_RESPONSE|ERR_SOCKET/);
});
