import assert from "node:assert/strict";
import {describe, test} from "node:test";
import {begin, on, visit} from "./bench.mjs";
import {accessible, openPage} from "./stage.mjs";

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
    await page.getByText("No run fits").waitFor();
    await page.getByRole("button", {name: "Show all runs"}).click();
    await page.getByRole("button", {name: "only runs tagged sewing"}).click();
    await row(two).waitFor({state: "detached"});
    await row(one).waitFor();
    await page.getByRole("button", {name: /remove the filter/}).click();
    await page.getByLabel("Workflow").selectOption("form");
    await row(one).waitFor({state: "detached"});
    await row(two).waitFor();
    check();
  });
});
