import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {accessible, fits, openBrowser, openPage, Place, Server, shot, until} from "./stage.mjs";

let place, server, browser;
before(async () => {
  place = await Place.make();
  server = await Server.start(place);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await place?.close();
});

/** A page that is signed in, closed at the end of the test with nothing bad said. */
async function visit(t, options = {}) {
  const p = await openPage(browser, server.url, options);
  t.after(() => p.close());
  await p.page.goto(await server.login());
  await p.page.getByRole("heading", {name: "Runs"}).waitFor();
  return p;
}

/** Starts a run over the interface, as another client would. */
async function begin(page, workflow, inputs = {}, more = {}) {
  return page.evaluate(async (body) => {
    const r = await fetch("/v1/runs", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
    if (!r.ok) throw new Error(await r.text());
    return (await r.json()).id;
  }, {workflow, inputs, ...more});
}

const get = (page, path) => page.evaluate(async (p) => (await fetch(p)).json(), path);

async function open(page, id, query = "") {
  await page.evaluate((h) => (location.hash = h), `#/run/${id}${query}`);
  await page.locator("h1 .status").waitFor();
}

const status = (page, s) => page.locator(`h1 .s-${s}`).waitFor();
const seq = async (page) => Number(await page.locator("[data-seq]").getAttribute("data-seq"));
/** What the page holds of the journal, from its list of events. */
const held = async (page) => {
  await page.getByRole("tab", {name: "Events"}).click();
  return page.getByRole("listbox", {name: "Events"});
};

describe("the door", () => {
  test("the code of the address signs in and is gone from it", async (t) => {
    const {page, check} = await visit(t);
    assert.equal(await page.evaluate(() => location.href), server.url + "/#/");
    assert.ok((await page.context().cookies()).every((c) => c.httpOnly && c.sameSite === "Strict"));
    assert.equal(await page.evaluate(() => document.cookie), "");
    check();
  });

  test("without a code it asks for one, and a used one is refused", async (t) => {
    const used = await server.login();
    const first = await openPage(browser, server.url);
    await first.page.goto(used);
    await first.page.getByRole("heading", {name: "Runs"}).waitFor();
    await first.close();
    const {page, check, close} = await openPage(browser, server.url);
    t.after(close);
    await page.goto(used);
    await page.getByRole("heading", {name: "Sign in"}).waitFor();
    await page.getByRole("alert").waitFor();
    await accessible(page, "the door");
    await page.getByLabel("Code").fill(new URL(await server.login()).hash.slice("#code=".length));
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
    await page.evaluate(async (r) => fetch(`/v1/runs/${r}/answer`, {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"choice":"publish"}'}), id);
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

describe("a run", () => {
  test("it is started from a form, followed live, answered by a button, and proved", async (t) => {
    await place.hold(t);
    const {page, check} = await visit(t);
    await page.getByRole("button", {name: "New run"}).click();
    const form = page.getByRole("dialog", {name: "Start a run"});
    await form.getByLabel("Workflow").selectOption("draft");
    await form.getByRole("button", {name: "Start"}).click();
    await form.getByText("is needed").waitFor();
    await form.getByLabel("topic").fill("lanterns");
    await form.getByLabel("tone").selectOption("warm");
    await form.getByText("Title, tags and more").click();
    await form.getByLabel("Title").fill("Lantern note");
    await form.getByLabel("Tags").fill("light, night");
    await form.getByRole("button", {name: "Start"}).click();
    await page.getByRole("heading", {name: /Lantern note/}).waitFor();

    await page.locator('[data-draft="stdout"]').getByText("still about lanterns").waitFor();
    await page.locator('.bar-span.running').waitFor();
    assert.match(await place.wf("ls"), /running/); // others use the store meanwhile
    await place.release();
    await page.locator('[data-waiting="editor#1"]').waitFor();
    assert.equal(await page.locator("[data-draft]").count(), 0, "what the journal has is no draft any more");
    await status(page, "waiting");
    await page.locator('[data-waiting="editor#1"]').getByRole("button", {name: "Publish it"}).click();
    await status(page, "done");
    assert.equal(await page.locator("[data-waiting]").count(), 0);

    const id = decodeURIComponent((await page.evaluate(() => location.hash)).match(/run\/([^?]+)/)[1]);
    const run = await get(page, `/v1/runs/${id}`);
    assert.deepEqual(run.info.tags, ["light", "night"]);
    assert.deepEqual(run.info.inputs, {tone: "warm", topic: "lanterns", words: 120});
    await page.getByRole("tab", {name: "Verify"}).click();
    await page.getByRole("button", {name: "Verify"}).click();
    await page.locator("[data-verified]").waitFor();
    check();
  });

  test("K-12: choices are buttons, the primary one first; details and timing are shown", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "clocks"}, {
      title: "Clocks", description: "About clocks", type: "general", scope: "bench", tags: ["time"], created_by: "ann", target_user: "ben", request_id: "clocks-1",
    });
    assert.equal(await begin(page, "draft", {topic: "clocks"}, {request_id: "clocks-1"}), id, "the same request starts nothing twice");
    await open(page, id);
    const asks = page.locator('[data-waiting="editor#1"]');
    await asks.waitFor();
    assert.deepEqual(await asks.locator("[data-choice]").allInnerTexts(), ["Publish it", "Change it", "Drop it"]);
    assert.ok(await asks.locator("[data-choice]").first().evaluate((b) => b.classList.contains("primary")));
    await asks.getByText("Add a remark").click();
    await asks.getByLabel("Remark").fill("kinder, please");
    await asks.getByRole("button", {name: "Change it"}).click();
    await page.locator('[data-waiting="editor#2"]').getByRole("button", {name: "Publish it"}).click();
    await status(page, "done");
    const run = await get(page, `/v1/runs/${id}`);
    const {timing: t12} = run;
    assert.ok(Math.abs(t12.ttfe_ms + t12.thinking_ms + t12.tools_ms - t12.total_ms) <= 1, JSON.stringify(t12));
    await page.getByRole("tab", {name: "Job"}).click();
    const pane = page.getByRole("tabpanel");
    assert.match(await pane.locator("[data-timing]").innerText(), /^⏱ \d+\.\d s · \d+ tools · TTFE \d+% · Thinking \d+% · Tools \d+%$/);
    for (const shown of ["About clocks", "general", "bench", "time", "ann", "ben", "clocks-1"]) await pane.getByText(shown, {exact: true}).first().waitFor();
    check();
  });

  test("the messages of a step show what its earlier visit was sent, and the diff what changed", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "tea"});
    await open(page, id);
    await page.getByRole("button", {name: "Change it"}).click();
    await page.locator('[data-waiting="editor#2"]').waitFor();
    await page.locator('[data-step="writer#2"]').click();
    await page.getByRole("tab", {name: "Messages"}).click();
    const told = await get(page, `/v1/runs/${id}/steps/writer%232/messages`);
    assert.ok(told.shared_prefix >= 2);
    await page.locator(`[data-shared="${told.shared_prefix}"]`).waitFor();
    assert.equal(await page.locator(".shared .msg").count(), told.shared_prefix);
    assert.equal(await page.locator(".msg").count(), told.messages.length);
    await page.getByRole("tab", {name: "Diff"}).click();
    await page.locator(".diff .add").getByText("It is kind.").waitFor();
    await page.getByRole("tab", {name: "Cost"}).click();
    await page.locator(".plain").getByText("writer").waitFor();
    await page.getByRole("tab", {name: "Output"}).click();
    await page.getByText("A small and kind thing.").first().waitFor();
    check();
  });

  test("a form is filled in, and its values are checked", async (t) => {
    const {page, check} = await visit(t);
    await open(page, await begin(page, "form"));
    const asks = page.locator("[data-waiting]");
    await asks.getByRole("button", {name: "Answer"}).click();
    await asks.getByText("is needed").waitFor();
    await asks.getByLabel("name").fill("Ada");
    await asks.getByLabel("age").fill("36");
    await asks.getByRole("button", {name: "Answer"}).click();
    await status(page, "done");
    await page.getByRole("tab", {name: "Job"}).click();
    await page.getByRole("tabpanel").getByText("Ada").first().waitFor();
    check();
  });

  test("the scrubber shows the run as it was", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "tea"});
    await open(page, id);
    await page.getByRole("button", {name: "Change it"}).click();
    await page.locator('[data-waiting="editor#2"]').waitFor();
    const last = await seq(page);
    const steps = page.locator("[data-step]");
    assert.equal(await steps.count(), 5);
    const slider = page.getByRole("slider");
    await slider.focus();
    await page.keyboard.press("Home");
    await page.locator('[data-seq="1"]').waitFor();
    assert.equal(await steps.count(), 0);
    await page.keyboard.press("ArrowRight");
    await page.locator('[data-seq="2"]').waitFor();
    assert.equal(await steps.count(), 1);
    await page.locator('[data-role="facts"].running').waitFor();
    assert.equal(await page.locator(".wfg .badge").count(), 0);
    await page.keyboard.press("PageDown");
    await page.locator('[data-seq="1"]').waitFor();
    const box = await slider.boundingBox();
    await page.mouse.click(box.x + box.width * 0.5, box.y + box.height / 2);
    const middle = await seq(page);
    assert.ok(middle > 1 && middle < last, String(middle));
    assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`^event ${middle} of ${last}: `));
    await until("the address has the place", () => page.evaluate((m) => location.hash.includes(`seq=${m}`), middle));
    await page.reload();
    await page.locator(`[data-seq="${middle}"]`).waitFor();
    await slider.focus();
    await page.keyboard.press("End");
    await page.locator(`[data-seq="${last}"]`).waitFor();
    assert.deepEqual(await page.locator('[data-role="writer"] + .badge').allTextContents(), ["2×"]);
    await page.getByRole("button", {name: "replay"}).click();
    await page.getByRole("button", {name: "pause"}).waitFor();
    await until("the replay reaches the end", async () => (await seq(page)) === last && (await page.getByRole("button", {name: "replay"}).count()) === 1);
    check();
  });

  test("the graph's nodes choose steps, and events replay to their place", async (t) => {
    const {page, check} = await visit(t);
    await open(page, await begin(page, "draft", {topic: "tea"}));
    await page.locator("[data-waiting]").waitFor();
    await page.getByRole("button", {name: /^writer .*, ok/}).click();
    await page.locator('[data-step="writer#1"][aria-current="true"]').waitFor();
    const list = await held(page);
    await page.getByRole("group", {name: "Types of events"}).getByRole("button", {name: /^tool_call/}).click();
    assert.equal(await list.getByRole("option").count(), 1);
    await list.getByRole("option").click();
    await page.getByText('"name": "list_files"').waitFor();
    const at = Number(await list.getByRole("option").getAttribute("data-event"));
    await page.getByRole("button", {name: "Replay to here"}).click();
    await page.locator(`[data-seq="${at}"]`).waitFor();
    await page.getByRole("button", {name: "Back to live"}).click();
    check();
  });

  test("a fork, a message and a cancellation are asked for once more", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "tea"});
    await open(page, id);
    await page.locator("[data-waiting]").waitFor();
    await page.getByRole("button", {name: "Message…"}).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Message").fill("mind the budget");
    await dialog.getByRole("button", {name: "Send"}).click();
    await page.getByText("sent; the next agent reads it").waitFor();
    const list = await held(page);
    await list.getByText("mind the budget").waitFor();

    await page.getByRole("button", {name: "Fork…"}).click();
    await dialog.getByLabel("Step").selectOption("writer#1");
    await dialog.getByLabel("Note").fill("another try");
    await dialog.getByRole("button", {name: "Fork"}).click();
    await page.waitForFunction((old) => !location.hash.includes(old), id);
    await page.locator("[data-waiting]").waitFor();
    const fork = (await page.evaluate(() => location.hash)).match(/run\/([^?]+)/)[1];
    assert.ok((await get(page, `/v1/runs/${fork}`)).info.forked_from);

    await page.getByRole("button", {name: "Cancel…"}).click();
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({state: "detached"});
    assert.equal((await get(page, `/v1/runs/${fork}`)).status, "waiting");
    await page.getByRole("button", {name: "Cancel…"}).click();
    await dialog.getByLabel("Reason").fill("enough");
    await dialog.getByRole("button", {name: "Cancel the run"}).click();
    await status(page, "cancelled");
    await page.getByText("enough").first().waitFor();
    assert.equal((await get(page, `/v1/runs/${id}`)).status, "waiting", "the original is as it was");
    check();
  });

  test("what is said is text, whatever it looks like", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "hostile", {}, {title: "<i>title</i>"});
    await open(page, id);
    await page.locator("[data-waiting]").waitFor();
    const asked = await page.locator("[data-waiting] pre").innerText();
    assert.equal(asked.trim(), '<img src=x onerror="document.title=1"><script>alert(1)</script> red  [link](javascript:alert(1))');
    await page.getByRole("button", {name: "<b>bold</b> move"}).waitFor();
    for (const tab of ["Activity", "Output", "Messages", "Diff", "Events", "Job"]) {
      await page.getByRole("tab", {name: tab}).click();
      assert.equal(await page.locator("main img, main script, main b b, a[href^=javascript]").count(), 0, tab);
    }
    await page.locator('[data-step="says#1"]').click();
    assert.match(await page.title(), /<i>title<\/i>/);
    check();
  });

  test("a run that nobody knows is said so", async (t) => {
    const {page, check} = await visit(t);
    await page.evaluate(() => (location.hash = "#/run/NOBODY"));
    await page.getByText("There is no run NOBODY").waitFor();
    check(/404/);
  });
});

describe("the connection", () => {
  test("a killed server comes back, and the page shows all of the history once and in order", async (t) => {
    await place.hold(t);
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "storms"});
    await open(page, id);
    await page.locator('[data-draft="stdout"]').getByText("still about storms").waitFor();
    const before = await seq(page);
    await server.kill();
    await page.locator('[data-link="lost"]').waitFor();
    assert.match(await page.locator("[data-link]").innerText(), /reconnecting/);
    assert.equal(await page.locator("[data-link]").getAttribute("aria-live"), "polite");
    assert.equal(await seq(page), before, "what was seen stays");
    await place.release();
    await server.up();
    await page.locator('[data-link="open"]').waitFor({timeout: 30_000}).catch(async (e) => { // the waits between tries have jitter
      throw new Error(`${e.message}\n${await page.locator("body").innerText()}\n${server.child.said}`);
    });
    await page.locator('[data-waiting="editor#1"]').getByRole("button", {name: "Publish it"}).click();
    await status(page, "done");
    const run = await get(page, `/v1/runs/${id}`);
    assert.equal(await seq(page), run.seq);
    const list = await held(page);
    assert.equal(await list.getByRole("option").first().getAttribute("aria-setsize"), String(run.seq));
    await list.focus();
    await page.keyboard.press("Home");
    const seen = new Set();
    for (let i = 0; i < run.seq; i++) {
      for (const n of await list.getByRole("option").evaluateAll((rows) => rows.map((r) => Number(r.dataset.event)))) seen.add(n);
      if (seen.size === run.seq) break;
      await page.keyboard.press("PageDown");
    }
    assert.deepEqual([...seen].sort((a, b) => a - b), Array.from({length: run.seq}, (_, i) => i + 1));
    check(/ERR_CONNECTION|WebSocket connection|ERR_EMPTY_RESPONSE|ERR_SOCKET/);
  });
});

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

  for (const colorScheme of ["light", "dark"]) {
    test(`axe finds nothing in the ${colorScheme} theme`, async (t) => {
      const {page, check} = await visit(t, {colorScheme});
      const id = await begin(page, "draft", {topic: "tea"}, {title: "A note about tea", tags: ["drinks"], description: "What it is for"});
      await page.locator(`[data-run="${id}"] .s-waiting`).waitFor();
      await accessible(page, "runs");
      await shot(page, `runs-${colorScheme}`);
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
        await shot(page, `run-${tab.toLowerCase()}-${colorScheme}`);
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
  }

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
});
