import assert from "node:assert/strict";
import {describe, test} from "node:test";
import {begin, open, status, visit} from "./bench.mjs";
import {accessible, fits, shot} from "./stage.mjs";

describe("for everyone", () => {
  test("all of it goes by keyboard, and the focus is seen", async (t) => {
    const {page, check} = await visit(t);
    const seen = () => page.evaluate(() => {
      const e = document.activeElement;
      return e.matches(":focus-visible") && getComputedStyle(e).outlineStyle !== "none";
    });
    await page.keyboard.press("Tab");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /Skip to the content/);
    await page.keyboard.press("?");
    await page.getByRole("dialog", {name: "Keys"}).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({state: "detached"});
    await page.keyboard.press("n");
    await page.getByRole("dialog", {name: "Start a run"}).waitFor();
    await page.keyboard.type("draft"); // chooses in the select
    await page.keyboard.press("Tab");
    await page.keyboard.type("keys");
    await page.keyboard.press("Enter");
    await page.locator("[data-waiting]").waitFor();
    await page.keyboard.press("a");
    assert.equal(await page.evaluate(() => document.activeElement.closest("[data-waiting]") !== null), true);
    for (let i = 0; i < 6 && !(await page.evaluate(() => document.activeElement.dataset.choice)); i++) await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.choice), "publish");
    assert.ok(await seen());
    await page.keyboard.press("Enter");
    await status(page, "done");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main", "the focus is not lost with the question");
    await page.keyboard.press("k");
    await page.keyboard.press("5");
    await page.getByRole("tab", {name: "Events", selected: true}).waitFor();
    await page.getByRole("listbox").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.locator('[data-seq="1"]').waitFor();
    await page.keyboard.press("l");
    await page.getByText("Back to").waitFor({state: "detached"});
    await page.keyboard.press("g");
    await page.getByRole("heading", {name: "Runs"}).waitFor();
    await page.locator("[data-run]").first().waitFor();
    await page.keyboard.press("j");
    assert.ok(await seen());
    await page.keyboard.press("Enter");
    await page.locator("h1 .status").waitFor();
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab");
      assert.ok(await page.evaluate(() => {
        const e = document.activeElement;
        if (e === document.body) return true;
        return e.matches(":focus-visible") && (getComputedStyle(e).outlineStyle !== "none" || e instanceof SVGElement);
      }), await page.evaluate(() => document.activeElement.outerHTML.slice(0, 120)));
    }
    check();
  });

  test("axe finds nothing, in light and in dark", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "tea"}, {title: "A note about tea", tags: ["drinks"], description: "What it is for"});
    await page.locator(`[data-run="${id}"] .s-waiting`).waitFor();
    await accessible(page, "runs");
    await page.getByRole("button", {name: "New run"}).click();
    await page.getByRole("dialog").waitFor();
    await accessible(page, "the form of a run");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({state: "detached"});
    await open(page, id);
    await page.getByRole("button", {name: "Change it"}).click();
    await page.locator('[data-waiting="editor#2"]').waitFor();
    await page.locator('[data-step="writer#2"]').click();
    for (const tab of ["Activity", "Output", "Messages", "Diff", "Events", "Cost", "Job", "Verify"]) {
      await page.getByRole("tab", {name: tab}).click();
      await page.getByText("Reading…").waitFor({state: "detached"});
      if (tab === "Events") await page.getByRole("option").nth(2).click();
      await accessible(page, tab);
    }
    for (const deed of ["Fork…", "Cancel…", "Message…"]) {
      await page.getByRole("button", {name: deed}).click();
      await page.getByRole("dialog").waitFor();
      await accessible(page, deed);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({state: "detached"});
    }
    await page.getByRole("slider").focus();
    await page.keyboard.press("Home");
    await accessible(page, "at the first event");
    check();
  });

  test("the theme is changed by hand, and kept", async (t) => {
    const {page, check} = await visit(t, {colorScheme: "light"});
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await paper();
    await page.getByRole("button", {name: /theme: auto/}).click();
    await page.getByRole("button", {name: /theme: light/}).click();
    const dark = await paper();
    assert.notEqual(dark, light);
    await page.reload();
    await page.getByRole("heading", {name: "Runs"}).waitFor();
    assert.equal(await paper(), dark);
    check();
  });

  test("it can be read at 400 px", async (t) => {
    const {page, check} = await visit(t, {viewport: {width: 400, height: 860}});
    const id = await begin(page, "draft", {topic: "a-very-long-topic-without-a-place-to-break-".repeat(4)}, {title: "A title that is long enough to need a second line", tags: ["one", "two", "three"]});
    await page.locator(`[data-run="${id}"] .s-waiting`).waitFor();
    await fits(page, "runs");
    await shot(page, "runs-400");
    await page.getByRole("button", {name: "New run"}).click();
    await page.getByRole("dialog").waitFor();
    await fits(page, "the form of a run");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({state: "detached"});
    await open(page, id);
    await page.getByRole("button", {name: "Change it"}).click();
    await page.locator('[data-waiting="editor#2"]').waitFor();
    await page.locator('[data-step="writer#2"]').click();
    for (const tab of ["Activity", "Output", "Messages", "Diff", "Events", "Cost", "Job", "Verify"]) {
      await page.getByRole("tab", {name: tab}).click();
      await page.getByText("Reading…").waitFor({state: "detached"});
      await fits(page, tab);
      await shot(page, `run-${tab.toLowerCase()}-400`);
    }
    await accessible(page, "a run at 400 px");
    check();
  });

  test("in high contrast what is chosen is seen, and so is what is drawn", async (t) => {
    const {page, check} = await visit(t, {forcedColors: "active"});
    const id = await begin(page, "draft", {topic: "tea"});
    await open(page, id);
    await page.locator(".bar-span").first().waitFor({state: "attached"});
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    for (const what of [".bar-span", ".top [aria-current]", '[role="tab"][aria-selected="true"]', '.one[aria-current="true"]']) {
      assert.notEqual(await page.locator(what).first().evaluate((e) => getComputedStyle(e).backgroundColor), paper, what);
    }
    await shot(page, "high-contrast");
    check();
  });

  test("a clock that is a day off makes no age wrong", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "form");
    for (const off of [1, -1]) {
      await page.addInitScript((days) => {
        const now = Date.now.bind(Date);
        Date.now = () => now() + 86_400_000 * days;
      }, off * (off === 1 ? 1 : 2)); // what was added before still holds
      await page.reload();
      await page.locator(`[data-run="${id}"]`).getByText(/started (now|\d+[sm] ago)/).waitFor();
    }
    check();
  });
});
