import assert from "node:assert/strict";
import {describe, test} from "node:test";
import {begin, get, on, open, seq, status, visit} from "./bench.mjs";
import {journal, signIn} from "./stage.mjs";

describe("the connection", () => {
  test("a killed server comes back, and the page shows all of the history once and in order", async (t) => {
    await on.place.hold(t);
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "storms"});
    await open(page, id);
    await page.locator('[data-draft="stdout"]').getByText("still about storms").waitFor();
    const before = await seq(page);
    await on.server.kill();
    await page.locator('[data-link="lost"]').waitFor();
    assert.match(await page.locator("[data-link]").innerText(), /reconnecting/);
    assert.equal(await page.locator("[data-link]").getAttribute("aria-live"), "polite");
    assert.equal(await seq(page), before, "what was seen stays");
    await on.place.release();
    await on.server.up();
    await signIn(page, await on.server.login()); // a restart logs out
    await page.locator('[data-link="open"]').waitFor({timeout: 30_000}).catch(async (e) => { // the waits between tries have jitter
      throw new Error(`${e.message}\n${await page.locator("body").innerText()}\n${on.server.child.said}`);
    });
    await page.locator('[data-waiting="editor#1"]').getByRole("button", {name: "Publish it"}).click();
    await status(page, "done");
    const run = await get(page, `/v1/runs/${id}`);
    assert.equal(await seq(page), run.seq);
    const stored = (await on.place.wf("replay", id, "-o", "jsonl")).trim().split("\n").map((l) => JSON.parse(l));
    assert.deepEqual(await journal(page, stored.length), stored.map((e) => [e.seq, e.type]));
    check(/401|ERR_CONNECTION|WebSocket connection|ERR_EMPTY_RESPONSE|ERR_SOCKET/);
  });

  test("who is no longer known is asked to sign in, and goes on where they were", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "doors"});
    await open(page, id);
    await page.locator("[data-waiting]").waitFor();
    await page.evaluate(() => sessionStorage.clear());
    await page.reload();
    await page.getByRole("heading", {name: "Sign in"}).waitFor();
    await page.goto(await on.server.login());
    await page.locator(`[data-run="${id}"]`).waitFor();
    await page.locator('[data-link="open"]').waitFor();
    check(/401/);
  });
});
