// The situations in which people meet the page: on each of them, in both themes and sizes, axe finds nothing, nothing is wider than the window, and the
// first screen says what a person asks first. With SHOTS=DIR a picture of each is left there.
import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {flows, replies} from "./flows.mjs";
import {accessible, Agent, fits, Hub, openBrowser, openPage, Place, Server, until, workflows} from "./stage.mjs";

const bad = [3, 77, 200, 421, 640, 988];
const wide = {width: 1440, height: 900};
const phone = {width: 400, height: 800};
let place, server, browser;

before(async () => {
  place = await Place.make({...workflows, ...flows, "catalogue-replies.yaml": replies(1000, bad), "careful-replies.yaml": replies(1000, []),
    "mostly-replies.yaml": replies(2000, Array.from({length: 1500}, (_, i) => i))});
  server = await Server.start(place);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await place?.close();
});

/** A page that is signed in at a server or hub, and what it is asked over the interface. */
async function visit(t, at = server, login = () => at.login()) {
  const p = await openPage(browser, at.url, {viewport: wide});
  t.after(() => p.close());
  await p.page.goto(await login());
  await p.page.getByRole("heading", {name: "Runs"}).waitFor();
  const ask = (path, body) => p.page.evaluate(async ([to, what]) => {
    const r = await fetch(to, {method: what ? "POST" : "GET", headers: {"Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem("wf-session")}`}, ...(what ? {body: JSON.stringify(what)} : {})});
    if (!r.ok) throw new Error(await r.text());
    return r.json();
  }, [path, body]);
  return {
    ...p, ask,
    begin: async (workflow, inputs = {}, more = {}) => (await ask("/v1/runs", {workflow, inputs, ...more})).id,
    reaches: (id, ...statuses) => until(`run ${id} is ${statuses}`, async () => statuses.includes((await ask(`/v1/runs/${id}?limit=1`)).status), 180_000),
  };
}

async function open(page, hash, ready = "h1 .status") {
  await page.evaluate((h) => (location.hash = h), hash);
  await page.locator(ready).first().waitFor();
}

/** Looks at a situation in both sizes. first are what the first screen must show. */
async function look(page, name, first = []) {
  for (const [size, viewport] of Object.entries({wide, phone})) {
    await page.setViewportSize(viewport);
    await page.getByText("Reading…").first().waitFor({state: "hidden"});
    await page.evaluate(() => scrollTo(0, 0));
    for (const what of first) {
      const of = what.wide || what.phone ? what[size] : what;
      if (!of) continue;
      const box = await page.locator(of).first().boundingBox();
      assert.ok(box && box.y >= 0 && box.y + Math.min(box.height, 30) <= viewport.height, `${name}, ${size}: ${of} is not on the first screen: ${JSON.stringify(box)}`);
    }
    assert.equal(await page.locator(".wfg .arc, .wfg .node").evaluateAll((all) => all.filter((e) => e.getClientRects().length === 0).length), 0, `${name}, ${size}: a part of the graph is not drawn`);
    await fits(page, `${name}, ${size}`);
    await accessible(page, `${name}-${size}`);
  }
  await page.setViewportSize(wide);
}

const run = ["h1 .status", ".figures", ".tabs", {wide: ".time .lanes"}, {wide: ".graph .paper-box"}];

describe("situations", () => {
  test("nothing has run yet", async (t) => {
    const own = await Place.make({});
    t.after(() => own.close());
    const {page, check} = await visit(t, await Server.start(own));
    await page.getByText("No runs yet").waitFor();
    await look(page, "empty");
    await open(page, "#/workflows", ".empty");
    await look(page, "no-workflows");
    check();
  });

  test("a run is at work", async (t) => {
    await place.hold(t);
    const {page, check, begin} = await visit(t);
    const id = await begin("draft", {topic: "tea"}, {title: "A note about tea", tags: ["drinks"]});
    await open(page, `#/run/${id}`);
    await page.locator(".outcome").getByText("still about tea").waitFor();
    await look(page, "live", [...run, '.outcome [data-named="facts#1"]', ".outcome .given"]);
    await place.release();
    await page.locator('[data-waiting="editor#1"]').waitFor();
    await look(page, "waiting", [...run, '[data-waiting] [data-choice="publish"]']);
    check();
  });

  test("a form waits", async (t) => {
    const {page, check, begin, reaches} = await visit(t);
    const id = await begin("edition");
    await reaches(id, "waiting");
    await open(page, `#/run/${id}`);
    await page.locator(".asked strong").getByText("Publish the catalogue?").waitFor();
    assert.deepEqual(await page.locator("[data-waiting] .lab label span").allInnerTexts(), ["Edition", "audience", "copies"], "in the order in which they are written");
    await look(page, "form", ["h1 .status", ".figures", "[data-waiting] [name=edition]"]);
    await page.getByRole("button", {name: "Answer"}).click();
    await page.locator(".fault").first().waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("name")), "edition", "the focus is where something is wrong");
    await look(page, "form-with-faults");
    await page.locator("[data-waiting] [name=edition]").fill("winter");
    await page.locator("[data-waiting] [name=audience]").selectOption("readers");
    await page.getByRole("button", {name: "Answer"}).click();
    await page.locator("h1 .s-done").waitFor();
    await look(page, "done", [...run, ".outcome .fields"]);
    check();
  });

  test("a run has failed", async (t) => {
    const {page, check, begin, reaches} = await visit(t);
    const id = await begin("broken");
    await reaches(id, "failed", "suspended");
    await open(page, `#/run/${id}`);
    await page.locator('.outcome [data-named="build#1"]').waitFor();
    await look(page, "failed", [...run, '.outcome [data-named="build#1"]']);
    check();
  });

  for (const n of [20, 60]) {
    test(`${n} roles, with loops`, async (t) => {
      const {page, check, begin, reaches} = await visit(t);
      const id = await begin(`team-of-${n}`);
      await reaches(id, "done");
      await open(page, `#/run/${id}`);
      await page.locator(".graph .map.shown").waitFor();
      await look(page, `roles-${n}`, [...run, ".outcome .fields"]);
      const zoom = () => page.locator(".graph .zoom").innerText();
      const readable = await zoom();
      await page.getByRole("button", {name: "Fit"}).click();
      await until("all of the graph is in the box", () => page.locator(".graph .paper-box").evaluate((b) => b.scrollHeight <= b.clientHeight + 1 && b.scrollWidth <= b.clientWidth + 1));
      assert.notEqual(await zoom(), readable);
      await page.getByRole("button", {name: "larger"}).click();
      await page.getByRole("button", {name: "larger"}).click();
      await page.getByRole("button", {name: "Full screen"}).click();
      await until("the graph has the screen", () => page.evaluate(() => document.fullscreenElement?.classList.contains("graph") ?? false));
      await page.keyboard.press("Escape");
      await page.evaluate(() => document.fullscreenElement && document.exitFullscreen());
      check();
    });
  }

  test("a command that failed and was treated as data is red, also in a fan-out", async (t) => {
    const {page, check, begin, reaches} = await visit(t);
    const id = await begin("links");
    await reaches(id, "done");
    await open(page, `#/run/${id}`);
    const fan = page.locator('[data-fan="look#1"]');
    await fan.getByText("50 items").waitFor();
    await page.locator('.outcome [data-named="look#1[7]"]').waitFor();
    assert.deepEqual(await fan.locator(".chip").allInnerTexts(), ["1 exit not 0", "49 ok"]);
    await page.locator('[data-step="look#1[7]"]').getByText("exit 4").waitFor();
    await page.locator(".outcome .folded").getByText("50 items: 1 exit not 0, 49 ok").waitFor();
    await page.locator(".bar-span.nonzero").waitFor({state: "attached"});
    await look(page, "red-item", run);
    await page.locator('.outcome [data-named="look#1[7]"]').click();
    await page.getByRole("tab", {name: "Messages"}).click();
    await page.getByText("No model was asked: this is what the command was given.").waitFor();
    assert.deepEqual(await page.locator(".pane .msgs .cap").allInnerTexts(), ["item", "command", "environment"]);
    assert.equal(await page.locator(".pane .msgs pre").first().innerText(), "7");
    check();
  });

  test("10,000 items are counted, although most of them were not read", async (t) => {
    const {page, check, ask} = await visit(t);
    await place.wf("run", "many.yaml", "-q");
    const {id} = (await ask("/v1/runs?workflow=many")).items[0];
    const asked = [];
    page.on("request", (r) => r.url().includes(`/v1/runs/${id}?`) && asked.push(new URL(r.url()).search));
    await open(page, `#/run/${id}`);
    await page.locator(".steps ol").evaluate((ol) => (ol.scrollTop = 0));
    const fan = page.locator('[data-fan="each#1"]');
    await fan.getByText(/ 10,000 items$/).waitFor();
    assert.deepEqual(await fan.locator(".chip").allInnerTexts(), ["10,000 ok"]);
    assert.match(await page.locator('[data-role="each"]').getAttribute("aria-label"), /, ok, visited 1/);
    assert.equal(asked.filter((q) => q.includes("before")).length, 0, "nothing was read page by page");
    await fan.locator(".chip").click();
    await fan.getByRole("button", {name: "Read more that are ok"}).waitFor();
    await page.locator(".steps ol").evaluate((ol) => (ol.scrollTop = ol.scrollHeight / 4));
    await until("items in the middle are drawn", async () => (await page.locator("[data-step^='each#1[']").count()) > 5);
    assert.ok(await page.locator("[data-step]").count() < 100, "only what is in sight is drawn");
    await look(page, "items-10000", run);
    assert.equal(asked.filter((q) => q.includes("status=")).length, 2, "they are counted once while the run does not move, and read where they are chosen");
    check();
  });

  test("more items than are read at once are read when a person asks for them", async (t) => {
    const {page, check, ask} = await visit(t);
    await place.wf("run", "many.yaml", "-q", "-i", "n=3500", "-i", "after=2", "--title", "More");
    const {id} = (await ask("/v1/runs?workflow=many")).items.find((r) => r.title === "More");
    await open(page, `#/run/${id}`);
    const fan = page.locator('[data-fan="each#1"]');
    await fan.getByText(/ 3,500 items$/).waitFor();
    await page.locator(".steps header").getByText("1,000 of 3,503").waitFor(); // and no further
    await page.locator(".steps ol").evaluate((ol) => (ol.scrollTop = 0));
    const drawn = () => page.locator(".steps ol").evaluate((ol) => Math.round(ol.scrollHeight / 48));
    await fan.locator(".fold").click();
    for (const n of [2000, 3000, 3500]) {
      await page.locator(".steps ol").evaluate((ol) => (ol.scrollTop = 0));
      await fan.getByRole("button", {name: "Read more"}).click();
      await until(`${n} items are listed`, async () => Math.abs((await drawn()) - n) < 10);
    }
    await fan.getByRole("button", {name: "Read more"}).waitFor({state: "hidden"});
    assert.deepEqual(await fan.locator(".chip").allInnerTexts(), ["3,500 ok"]);
    assert.match(await page.locator('[data-role="each"]').getAttribute("aria-label"), /, ok, visited 1/);
    check();
  });

  test("failed items far back in a fan-out are seen at once, and why they could not be read", async (t) => {
    const {page, check, begin, reaches} = await visit(t);
    const id = await begin("far");
    await reaches(id, "done");
    let broken = true;
    await page.route(/[?&]status=/, (r) => broken ? r.fulfill({status: 503, contentType: "application/json", body: '{"code":"store_unavailable","message":"the store is away"}'}) : r.fallback());
    await open(page, `#/run/${id}`);
    const away = page.locator(".steps").getByRole("alert").first();
    await away.getByText("the store is away").waitFor();
    await look(page, "items-not-counted");
    broken = false;
    await away.getByRole("button", {name: "Try again"}).click();
    const fan = page.locator('[data-fan="check#1"]');
    await page.locator(".outcome .folded").getByText("1,000 items: 6 failed, 994 ok").waitFor();
    await page.locator(".steps ol").evaluate((ol) => (ol.scrollTop = 0));
    await fan.getByText(/ 1,000 items$/).waitFor();
    assert.deepEqual(await fan.locator(".chip").allInnerTexts(), ["6 failed", "994 ok"]);
    assert.match(await page.locator('[data-role="check"]').getAttribute("aria-label"), /, failed,/);
    assert.deepEqual(await page.locator("[data-step^='check#1[']").evaluateAll((all) => all.map((e) => e.dataset.step)), bad.map((i) => `check#1[${i}]`));
    await page.locator('[data-step="check#1[200]"]').click();
    await page.getByRole("heading", {name: "check#1[200]"}).waitFor();
    await page.locator(".pane").getByText("Check entry 200.").waitFor();
    await page.locator(".steps header").getByText("1,000 of 2,101").waitFor(); // the rest was not read
    await look(page, "items-far");
    check(/503/);
  });

  test("failed items that were read stay while the run goes on", async (t) => {
    const {page, check, ask, begin, reaches} = await visit(t);
    const id = await begin("mostly");
    await reaches(id, "waiting");
    await open(page, `#/run/${id}`);
    const fan = page.locator('[data-fan="check#1"]');
    const list = page.locator(".steps ol");
    const top = () => list.evaluate((ol) => (ol.scrollTop = 0));
    const drawn = () => list.evaluate((ol) => Math.round(ol.scrollHeight / 48));
    const failed = fan.getByRole("button", {name: "1,500 failed"});
    await until("its items are counted", async () => {
      await top();
      return failed.isVisible();
    });
    const first = await drawn(); // with the newest 200 of them
    await failed.click();
    await failed.click();
    const lines = async (n) => until(`${n} failed items are listed`, async () => Math.abs((await drawn()) - first + 200 - n) < 10);
    await lines(1000);
    await top();
    await fan.getByRole("button", {name: "Read more that are failed"}).click();
    await lines(1500);
    const counted = page.waitForResponse((r) => /[?&]status=failed,/.test(decodeURIComponent(r.url())));
    await ask(`/v1/runs/${id}/answer`, {step: "gate#1", text: "yes"});
    await page.locator("h1 .s-done").waitFor();
    await counted;
    await lines(1500);
    await page.locator(".steps header").getByText("1,000 of 3,102").waitFor();
    check();
  });

  test("sub-workflows", async (t) => {
    const {page, check, begin, reaches} = await visit(t);
    const id = await begin("journey");
    await reaches(id, "done");
    await open(page, `#/run/${id}`);
    await page.locator('[data-step="visit#1[3]"]').click();
    await page.getByText(/Its own run:/).waitFor();
    await look(page, "sub-workflows", run);
    await page.locator(".pane a").getByText(/Its own run:/).click();
    await page.getByText(`part of ${id}`).waitFor();
    check();
  });

  test("six of a thousand items have failed: found, understood, forked, answered and compared in under ten clicks", async (t) => {
    const {page, check, begin, reaches} = await visit(t);
    const id = await begin("catalogue", {bad}, {title: "The winter catalogue"});
    await reaches(id, "failed");
    let clicks = 0;
    const click = async (what) => {
      await what.click();
      clicks++;
    };
    await open(page, "#/", "[data-run]");
    await click(page.locator(`[data-run="${id}"] .name a`));
    await page.locator("h1 .s-failed").waitFor();
    await page.locator(".folded").getByText("1,000 items: 6 failed, 994 ok").waitFor();
    assert.deepEqual(await page.locator(".outcome [data-named]").allInnerTexts(), bad.map((i) => `check#1[${i}]`), "the six are named, and nothing was opened for it");
    assert.deepEqual(await page.locator('[data-fan="check#1"] .chip').allInnerTexts(), ["6 failed", "994 ok"]);
    assert.match(await page.locator('[data-role="check"]').getAttribute("aria-label"), /, failed,/, "as its items, not as the last of them");
    await page.getByRole("heading", {name: "check#1[988]"}).waitFor(); // of the items one that failed is shown at first
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("button", {name: "Back to the end"}).waitFor();
    await page.locator(".folded").getByText("1,000 items: 6 failed, 994 ok").waitFor(); // what came of it, wherever one looks
    await page.getByRole("button", {name: "Back to the end"}).click();
    await look(page, "items-failed", [...run, '.outcome [data-named="check#1[988]"]']);

    await click(page.locator('[data-named="check#1[3]"]'));
    await page.getByRole("heading", {name: "check#1[3]"}).waitFor();
    await page.locator(".pane").getByText("Check entry 3. It has no price.").waitFor(); // its input
    await page.locator(".stephead").getByText(/1\.3k in/).waitFor(); // what it took
    await click(page.getByRole("tab", {name: "Messages"}));
    await page.locator(".msg").getByText("You check entries of a catalogue.").waitFor(); // what the model was sent
    await click(page.getByRole("tab", {name: "Cost"}));
    await page.locator(".plain tfoot").getByText("total").waitFor();

    await click(page.getByRole("button", {name: "Fork…"}));
    const dialog = page.getByRole("dialog");
    await accessible(page, "fork-dialog");
    await dialog.getByLabel("Another model").fill("script/careful-replies.yaml");
    await click(dialog.getByRole("button", {name: "Fork"}));
    await page.getByText(`fork of ${id}`).waitFor();
    const fork = await page.evaluate(() => decodeURIComponent(location.hash.match(/run\/([^?]+)/)[1]));
    await reaches(fork, "waiting", "failed");
    await page.locator('[data-waiting="publish#1"]').waitFor();
    await page.locator("[data-waiting] [name=edition]").fill("winter");
    await page.locator("[data-waiting] [name=audience]").selectOption("readers");
    await click(page.getByRole("button", {name: "Answer"}));
    await page.locator("h1 .s-done").waitFor();
    await page.locator('[data-fan="check#1"]').getByText(/ 1,000 items$/).waitFor(); // of 1,002 steps, of which a thousand are read at once
    await click(page.getByRole("link", {name: "Compare"}));
    await page.getByText(`${fork} is a fork of ${id}`).waitFor();
    await page.locator('[data-pair="check#1[3]"]').waitFor();
    assert.equal(await page.locator('[data-pair^="check#1["]').count(), 6, "what ended well is not performed again");
    await page.locator('[data-pair="publish#1"]').getByText("not in this run").waitFor();
    assert.ok(clicks < 10, `${clicks} clicks`);
    t.diagnostic(`${clicks} clicks`);
    await look(page, "compare", [`.beside a[href="#/run/${id}"]`]);
    await page.setViewportSize(phone);
    assert.deepEqual(await page.locator(".beside th, .beside td").evaluateAll((cells) => cells.filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.textContent)), [], "both runs are on a phone");
    await page.setViewportSize(wide);
    await open(page, `#/run/${id}`);
    await page.getByText("its fork").waitFor();
    check();
  });

  test("workflows, what begins them, and how they went", async (t) => {
    const {page, check} = await visit(t);
    await page.getByRole("link", {name: "Workflows"}).click();
    const row = page.locator('[data-workflow="catalogue"]');
    await row.getByText(/went well/).waitFor();
    await look(page, "workflows");
    await page.setViewportSize(phone);
    assert.deepEqual(await page.locator(".flows tr").evaluateAll((rows) => rows.filter((r) => {
      const button = r.querySelector(".act .btn")?.getBoundingClientRect();
      const range = document.createRange();
      return button && [...r.querySelectorAll(".name a, .sub span")].some((e) => {
        range.selectNodeContents(e);
        return [...range.getClientRects()].some((b) => b.right > button.left && b.bottom > button.top && b.top < button.bottom);
      });
    }).map((r) => r.dataset.workflow)), [], "no button lies on words");
    await page.setViewportSize(wide);
    await row.getByRole("button", {name: "Start…"}).click();
    assert.equal(await page.getByLabel("Workflow").inputValue(), "catalogue");
    await page.keyboard.press("Escape");
    check();
  });

  test("a run of 100,000 events is there at once, and as it is", async (t) => {
    const {page, check, ask} = await visit(t);
    await place.wf("run", "big.yaml", "-q", "--title", "The long one").catch((e) => assert.match(e.stderr, /waits/)); // another process wrote it
    const {id} = (await ask("/v1/runs?workflow=big")).items[0];
    const {seq} = await ask(`/v1/runs/${id}?limit=1`);
    assert.ok(seq > 100_000, String(seq));
    const times = {bare: [], run: []};
    for (let i = 0; i < 5; i++) {
      for (const [what, hash, ready] of [["bare", "#/workflows", ".flows"], ["run", `#/run/${id}`, '[data-waiting="gate#1"] [data-choice]']]) {
        await page.goto("about:blank");
        const from = performance.now();
        await page.goto(`${server.url}/${hash}`);
        // Whatever is shown of its status is true.
        await page.locator(ready).waitFor();
        if (what === "run") await page.locator("h1 .s-waiting").waitFor();
        times[what].push(performance.now() - from);
      }
    }
    const median = (list) => Math.round(list.toSorted((a, b) => a - b)[2]);
    t.diagnostic(`a run of ${seq} events is usable after ${median(times.run)} ms, the page of workflows after ${median(times.bare)} ms`);
    await look(page, "events-100000", [...run, "[data-waiting] [data-choice]"]);
    check();
  });

  test("the server is away", async (t) => {
    const own = await Place.make({"form.yaml": workflows["form.yaml"]});
    t.after(() => own.close());
    const far = await Server.start(own);
    const {page, check, begin, reaches} = await visit(t, far);
    const id = await begin("form");
    await reaches(id, "waiting");
    await open(page, `#/run/${id}`);
    await far.kill();
    await page.locator('[data-link="lost"]').waitFor();
    await look(page, "offline", ["[data-link]"]);
    check(/./);
  });

  test("a hub, its workers and its queue", async (t) => {
    const own = await Place.make({"form.yaml": workflows["form.yaml"]});
    t.after(() => own.close());
    const hub = await Hub.start(own);
    const login = async () => (await own.wf("hub", "--login", "--data", `${own.dir}/hub`)).split(/\s+/).find((w) => w.startsWith(hub.url));
    const worker = new Agent(own, hub, "north");
    const {page, check, begin} = await visit(t, hub, login);
    await open(page, "#/agents", ".list");
    await page.getByText("north").first().waitFor();
    await look(page, "agents");
    await worker.kill();
    await until("the worker is away", async () => (await page.locator(".list").innerText()).includes("away"));
    await begin("form", {}, {request_id: "kept"});
    await open(page, "#/queue", ".list");
    await page.getByText("no worker that has the workflow is connected").waitFor();
    await look(page, "queue");
    check();
  });
});
