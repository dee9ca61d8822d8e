import assert from "node:assert/strict";
import {describe, test} from "node:test";
import {begin, get, on, visit} from "./bench.mjs";
import {accessible, fits, shot, until} from "./stage.mjs";

describe("finding a run", () => {
  test("by what was said in it, with the place and the words around it", async (t) => {
    const {page, check} = await visit(t);
    const one = await begin(page, "draft", {topic: "quicksilver"}, {title: "About a metal"});
    const two = await begin(page, "form", {}, {title: "Something else"});
    const row = (id) => page.locator(`[data-run="${id}"]`);
    await row(one).locator(".s-waiting").waitFor();
    await row(two).locator(".s-waiting").waitFor();
    await page.getByLabel("Search in runs").fill("quicksil");
    await row(two).waitFor({state: "detached"});
    await row(one).locator(".hit").getByText(/quicksilver/).first().waitFor();
    await accessible(page, "found");
    await page.setViewportSize({width: 400, height: 800});
    await fits(page, "found at 400 px");
    await shot(page, "found-400");
    await page.setViewportSize({width: 1360, height: 900});
    const hit = row(one).locator(".hit a").filter({hasText: "#"}).first();
    const step = await hit.innerText();
    await hit.click();
    await page.getByRole("heading", {name: step, exact: true}).waitFor();
    await page.goBack();
    await page.getByLabel("Search in runs").fill(two); // an id
    await row(two).waitFor();
    assert.equal(await page.locator("[data-run]").count(), 1);
    let answer;
    const held = new Promise((go) => (answer = go));
    await page.route(/search=nobody/, async (r) => {
      await held;
      await r.continue();
    });
    await page.getByLabel("Search in runs").fill("nobodysaidthis");
    await page.locator(".panel.stale[aria-busy=true]").waitFor(); // what is listed does not fit yet, and is not counted as if it did
    assert.doesNotMatch(await page.getByRole("group", {name: "Status"}).innerText(), /\d/);
    answer();
    await page.getByText("No run matches these filters").waitFor();
    assert.equal(await page.locator(".panel.stale").count(), 0);
    check();
  });

  test("what is not searched yet is looked for again, though no run changes", async (t) => {
    const {page, check} = await visit(t);
    let behind = 2;
    await page.route(/search=lagging/, async (r) => {
      const response = await r.fetch();
      const json = await response.json();
      await r.fulfill({response, json: {...json, searched: {...json.searched, behind: Math.max(0, behind--)}}});
    });
    await page.getByLabel("Search in runs").fill("lagging");
    const notice = page.getByText(/is not searched yet/);
    await notice.waitFor();
    await notice.waitFor({state: "detached"});
    assert.ok(behind < 0, "it was read until nothing was left");
    check();
  });

  test("by status with counts, person and time; a view is kept under a name", async (t) => {
    const {page, check} = await visit(t);
    const mine = await begin(page, "form", {}, {title: "For zoe", target_user: "zoe"});
    await page.locator(`[data-run="${mine}"] .s-waiting`).waitFor();
    await page.getByText("More filters").click();
    await page.getByLabel("Person").fill("zoe");
    await page.keyboard.press("Enter");
    await until("one run is left", async () => (await page.locator("[data-run]").count()) === 1);
    await until("it is counted", async () => /waiting\s*1/.test(await page.getByRole("group", {name: "Status"}).innerText()));
    await page.getByLabel("Time").selectOption("1h");
    await page.getByRole("button", {name: "Keep this view…"}).click();
    await page.getByRole("dialog").getByLabel("Name").fill("zoe lately");
    await page.keyboard.press("Enter");
    const view = page.getByRole("group", {name: "Views"}).getByRole("button", {name: "zoe lately", exact: true});
    await view.waitFor();
    await page.getByRole("button", {name: "Clear"}).click();
    await until("the others are back", async () => (await page.locator("[data-run]").count()) > 1);
    await page.reload();
    await view.click();
    await until("the view is in the address", async () => /person=zoe/.test(page.url()) && /since=1h/.test(page.url()));
    await until("one run is left", async () => (await page.locator("[data-run]").count()) === 1);
    await accessible(page, "a view");
    await page.getByRole("button", {name: "forget the view zoe lately"}).click();
    await view.waitFor({state: "detached"});
    check();
  });

  test("several are cancelled at once, and two are compared", async (t) => {
    const {page, check} = await visit(t);
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push(await begin(page, "form", {}, {title: `Batch ${i}`, tags: ["batch"]}));
    for (const id of ids) await page.locator(`[data-run="${id}"] .s-waiting`).waitFor();
    await page.getByRole("button", {name: "Select"}).click();
    for (const id of ids.slice(0, 2)) await page.getByLabel(`choose ${id}`).check();
    await accessible(page, "chosen runs");
    const compare = await page.getByRole("link", {name: "Compare"}).getAttribute("href");
    assert.ok(ids.slice(0, 2).every((id) => compare.includes(id)), compare);
    await page.getByRole("button", {name: "Cancel 2…"}).click();
    await page.getByRole("dialog").getByRole("button", {name: "Cancel them"}).click();
    for (const id of ids.slice(0, 2)) await page.locator(`[data-run="${id}"] .s-cancelled`).waitFor();
    assert.equal((await get(page, `/v1/runs/${ids[2]}`)).status, "waiting");
    assert.equal(await on.place.wf("ls", "--tag", "batch", "--status", "cancelled", "-o", "jsonl").then((out) => out.trim().split("\n").length), 2);
    check();
  });
});
