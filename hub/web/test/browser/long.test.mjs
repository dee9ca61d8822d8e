import assert from "node:assert/strict";
import {before, describe, test} from "node:test";
import {begin, get, on, open, seq, status, visit} from "./bench.mjs";
import {events, openPage, until} from "./stage.mjs";

// A run of 3,000 events, more than are read at once, that waits at its end.
describe("a long run", () => {
  const rounds = 750;
  let id, run;
  before(async () => {
    const {page, close} = await openPage(on.browser, on.server.url);
    await page.goto(await on.server.login());
    await page.getByRole("heading", {name: "Runs"}).waitFor();
    id = await begin(page, "long", {rounds});
    await until("the run waits", async () => (await get(page, `/v1/runs/${id}?limit=1`)).status === "waiting", 120_000);
    run = await get(page, `/v1/runs/${id}`);
    await close();
  });

  const badges = (page, n) => Promise.all(["odd", "even"].map((role) => page.locator(`[data-role="${role}"] + .badge`, {hasText: `${n}×`}).waitFor()));
  const count = (n) => n.toLocaleString("en");
  const listed = (page, text) => page.getByRole("region", {name: "Steps"}).locator("header .dim").getByText(text, {exact: true}).waitFor();

  test("it is shown as it is, with its own totals, from its newest events", async (t) => {
    const {page, check} = await visit(t);
    let sent = 0;
    page.on("websocket", (w) => w.on("framereceived", ({payload}) => {
      const f = JSON.parse(payload);
      sent += f.events?.length ?? (f.event ? 1 : 0);
    }));
    await page.reload();
    await page.getByRole("heading", {name: "Runs"}).waitFor();
    await page.locator('[data-link="open"]').waitFor();
    const read = [];
    page.on("request", (r) => r.url().includes("/events?") && read.push(r.url()));
    await open(page, id);
    await status(page, "waiting");
    await page.locator('[data-waiting="gate#1"]').getByRole("button", {name: "It was"}).waitFor();
    assert.ok(run.seq > 3000 && sent > 0 && sent <= 1000, `${sent} of ${run.seq} events came over the socket`);
    assert.deepEqual(read, [], "and no others were asked for");
    assert.equal(await seq(page), run.seq);
    const figures = await page.locator(".figures").innerText();
    assert.match(figures, new RegExp(`\\b${run.steps_total} steps`));
    assert.equal(run.steps_total, 2 * rounds + 1);
    await badges(page, rounds);
    await page.locator(".time .place").getByText(/\d+ events not read yet/).waitFor();
    await listed(page, `${count(run.steps.length)} of ${count(run.steps_total)}`);
    check();
  });

  test("until it was read, nothing is said of it", async (t) => {
    const {page, check} = await visit(t);
    let go;
    const held = new Promise((done) => (go = done));
    await page.route(`**/v1/runs/${id}`, async (r) => {
      await held;
      await r.continue();
    });
    await page.evaluate((h) => (location.hash = h), `#/run/${id}`);
    await page.getByText("Reading the run…").waitFor();
    assert.equal(await page.locator(".head, .time, .figures").count(), 0);
    go();
    await status(page, "waiting");
    check();
  });

  test("its steps and events are read back to the first", async (t) => {
    const {page, check} = await visit(t);
    await open(page, id);
    const steps = page.getByRole("region", {name: "Steps"});
    await steps.getByRole("button", {name: "Show earlier"}).click();
    await listed(page, count(run.steps_total));
    assert.equal(await steps.getByRole("button", {name: "Show earlier"}).count(), 0);
    await steps.locator("ol").evaluate((ol) => (ol.scrollTop = 0));
    await page.locator('[data-step="odd#1"]').click();
    await page.getByRole("tab", {name: "Output"}).click();
    await page.getByRole("tabpanel").getByText("n", {exact: true}).waitFor();

    const list = await events(page);
    await list.focus();
    await page.keyboard.press("Home");
    await list.locator('[data-event="1"]').getByText("run_started").waitFor();
    await page.getByRole("group", {name: "Types of events"}).getByRole("button", {name: /^run_started/}).click();
    assert.equal(await list.getByRole("option").count(), 1);
    const earlier = page.getByRole("button", {name: "Read earlier ones"});
    while (await earlier.count()) {
      const said = page.locator(".evbar [role=status]");
      const before = await said.innerText();
      await earlier.click();
      await until("more were read", async () => (await said.innerText()) !== before);
    }
    await page.getByText(`1 of ${count(run.seq)} events`, {exact: true}).waitFor();
    await page.locator(".time .place").getByText(/not read yet/).waitFor({state: "detached"});
    await status(page, "waiting");
    await badges(page, rounds);
    check();
  });

  test("the scrubber goes to any of its events", async (t) => {
    const {page, check} = await visit(t);
    await open(page, id);
    const slider = page.getByRole("slider");
    await slider.focus();
    await page.keyboard.press("Home");
    await page.locator('[data-seq="1"]').waitFor();
    assert.equal(await page.locator("[data-step]").count(), 0);
    await page.keyboard.press("ArrowRight");
    await page.locator('[data-seq="2"]').waitFor();
    await page.locator('[data-step="odd#1"]').waitFor();
    await status(page, "waiting"); // the run itself is where it is

    const hole = slider.locator(".hole");
    const box = await hole.boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await until("an event in the middle is shown", async () => (await seq(page)) > 500 && (await seq(page)) < run.seq - 500);
    const there = await seq(page);
    const was = await get(page, `/v1/runs/${id}?at=${there}`);
    assert.equal(was.seq, there);
    await listed(page, was.steps.length > 200 ? new RegExp(`of ${count(was.steps_total ?? was.steps.length)}$`) : count(was.steps.length));
    const visits = was.steps.filter((s) => s.role === "odd").length;
    await page.locator('[data-role="odd"] + .badge', {hasText: `${visits}×`}).waitFor();
    await page.keyboard.press("End");
    await page.locator(`[data-seq="${run.seq}"]`).waitFor();
    await badges(page, rounds);
    check();
  });

  test("an address leads to an early event, and to an early step", async (t) => {
    const {page, check} = await visit(t);
    await open(page, `${id}?seq=1777`);
    await page.locator('[data-seq="1777"]').waitFor();
    const was = await get(page, `/v1/runs/${id}?at=1777&limit=1`);
    await listed(page, new RegExp(`^[\\d,]+ of ${count(was.steps_total)}$`));
    await page.getByRole("region", {name: "Steps"}).getByRole("button", {name: "Show earlier"}).click();
    await listed(page, count(was.steps_total));
    await page.getByRole("button", {name: "replay"}).click();
    await page.getByRole("button", {name: "pause"}).click();

    await open(page, `${id}?step=odd%232`);
    await page.getByRole("button", {name: "Back to live"}).waitFor({state: "detached"});
    await page.getByText("odd#2 is not among the steps that were read").waitFor();
    await page.getByRole("button", {name: "Show earlier steps"}).click();
    await page.getByRole("heading", {name: "odd#2"}).waitFor();
    check();
  });

  test("it goes on where it is watched", async (t) => {
    const {page, check} = await visit(t);
    const mine = await begin(page, "long", {rounds: 300});
    await open(page, mine);
    await page.locator('[data-waiting="gate#1"]').getByRole("button", {name: "It was"}).click({timeout: 60_000});
    await status(page, "done");
    const end = await get(page, `/v1/runs/${mine}`);
    await page.locator(`[data-seq="${end.seq}"]`).waitFor();
    await listed(page, count(end.steps.length));
    await badges(page, 300);
    check();
  });
});
