import assert from "node:assert/strict";
import {describe, test} from "node:test";
import {begin, on, visit} from "./bench.mjs";
import {accessible, openPage, until} from "./stage.mjs";

describe("the door", () => {
  test("the code of the address signs in and is gone from it", async (t) => {
    const {page, check} = await visit(t);
    assert.equal(await page.evaluate(() => location.href), on.server.url + "/#/");
    assert.deepEqual(await page.context().cookies(), []);
    assert.equal(await page.evaluate(() => Object.keys(localStorage).filter((k) => k !== "wf-theme").length), 0);
    await page.reload(); // the session is kept as long as the tab
    await page.getByRole("heading", {name: "Runs"}).waitFor();
    assert.equal(await page.evaluate(() => document.cookie), "");
    check();
  });

  test("without a code it asks for one, and a used one is refused", async (t) => {
    const used = await on.server.login();
    const first = await openPage(on.browser, on.server.url);
    await first.page.goto(used);
    await first.page.getByRole("heading", {name: "Runs"}).waitFor();
    await first.close();
    const {page, check, close} = await openPage(on.browser, on.server.url);
    t.after(close);
    await page.goto(used);
    await page.getByRole("heading", {name: "Sign in"}).waitFor();
    await page.getByRole("alert").waitFor();
    await accessible(page, "the door");
    await page.getByLabel("Code").fill(new URL(await on.server.login()).hash.slice("#code=".length));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", {name: "Runs"}).waitFor();
    check(/401|403/); // what the browser says of a refusal
  });
});

describe("the list", () => {
  test("a run that another client starts shows up, and its status follows it", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "tea"}, {title: "Tea for two", tags: ["green"]});
    const row = page.locator(`[data-run="${id}"]`);
    await row.getByText("Tea for two").waitFor();
    await row.locator(".s-waiting").waitFor();
    assert.match(await row.innerText(), /A small thing/);
    await page.evaluate(async (r) => fetch(`/v1/runs/${r}/answer`, {method: "POST", headers: {"Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem("wf-session")}`}, body: '{"choice":"publish"}'}), id);
    await row.locator(".s-done").waitFor();
    check();
  });

  test("it is filtered by status, text and tag", async (t) => {
    const {page, check} = await visit(t);
    const one = await begin(page, "draft", {topic: "a"}, {title: "Needle in hay", tags: ["sewing"]});
    const two = await begin(page, "form", {}, {title: "Only hay"});
    const row = (id) => page.locator(`[data-run="${id}"]`);
    await row(one).waitFor();
    await row(two).waitFor();
    await page.getByLabel("Search in runs").fill("needle");
    await row(two).waitFor({state: "detached"});
    assert.equal(await page.locator("[data-run]").count(), 1);
    await page.reload();
    await row(one).waitFor();
    assert.equal(await page.getByLabel("Search in runs").inputValue(), "needle", "a reload keeps the filter");
    assert.equal(await row(two).count(), 0);
    await row(one).locator(".state").click({force: true}); // the whole row leads to the run
    await page.getByRole("heading", {name: /Needle in hay/}).waitFor();
    await page.getByRole("main").getByRole("link", {name: "Runs"}).click();
    await row(one).waitFor();
    assert.equal(await page.getByLabel("Search in runs").inputValue(), "needle", "so does the way back");
    await page.getByLabel("Search in runs").fill("");
    await row(two).waitFor();
    await page.getByRole("group", {name: "Status"}).getByRole("button", {name: "cancelled"}).click();
    await page.getByText("No run matches these filters").waitFor();
    await page.getByRole("button", {name: "Show all runs"}).click();
    await page.getByRole("button", {name: "only runs tagged sewing"}).click();
    await row(two).waitFor({state: "detached"});
    await row(one).waitFor();
    await page.getByRole("button", {name: "Clear"}).click();
    await page.getByLabel("Workflow").selectOption("form");
    await row(one).waitFor({state: "detached"});
    await row(two).waitFor();
    check();
  });
});

describe("pushed changes", () => {
  // When the page first showed a row, or a state of one, by the clock of this machine.
  const watch = (page) => page.evaluate(() => {
    globalThis.shown = {};
    const look = () => {
      for (const row of document.querySelectorAll("[data-run]")) {
        const state = /s-([a-z]+)/.exec(row.querySelector(".status")?.className ?? "")?.[1] ?? "?";
        for (const key of [row.dataset.run, `${row.dataset.run} ${state}`]) globalThis.shown[key] ??= Date.now();
      }
    };
    look();
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
  });
  const shown = async (page, key) => {
    await until(`the page shows ${key}`, () => page.evaluate((k) => k in globalThis.shown, key));
    return page.evaluate((k) => globalThis.shown[k], key);
  };
  const stored = async (id) => (await on.place.wf("replay", id, "-o", "jsonl")).trim().split("\n").map((l) => JSON.parse(l));
  const median = (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)];

  test("what another process does is on the screen at once, and nothing is read while nothing happens", async (t) => {
    const {page, check} = await visit(t);
    await page.locator('[data-link="open"]').waitFor();
    await watch(page);
    const news = [], answers = [];
    for (let i = 0; i < 7; i++) {
      const began = JSON.parse(await on.place.wf("run", "outer.yaml", "-o", "json"));
      const first = (await stored(began.id))[0];
      news.push(await shown(page, began.id) - Date.parse(first.ts));

      const asked = await begin(page, "form");
      await shown(page, `${asked} waiting`);
      await on.place.wf("answer", asked, "--field", "name=Ada");
      const at = await shown(page, `${asked} done`);
      const last = (await stored(asked)).at(-1);
      assert.equal(last.type, "done");
      answers.push(at - Date.parse(last.ts));
    }
    t.diagnostic(`from the event to the row, median of ${news.length}: a new run ${median(news)} ms (${news.join(", ")}), an answer ${median(answers)} ms (${answers.join(", ")})`);

    const looked = () => page.waitForResponse((r) => r.url().endsWith("/readyz")); // which is asked for every five seconds
    await looked();
    const asked = [];
    page.on("request", (r) => asked.push(new URL(r.url()).pathname));
    await looked();
    assert.deepEqual(asked.filter((p) => p !== "/readyz"), []);
    check();
  });
});
