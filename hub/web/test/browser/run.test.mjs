import assert from "node:assert/strict";
import {readFile} from "node:fs/promises";
import {describe, test} from "node:test";
import {begin, get, on, open, seq, status, visit} from "./bench.mjs";
import {accessible, events, fits, until} from "./stage.mjs";

describe("a run", () => {
  test("it is started from a form, followed live, answered by a button, and proved", async (t) => {
    await on.place.hold(t);
    const {page, check} = await visit(t);
    await page.getByRole("button", {name: "New run"}).click();
    const form = page.getByRole("dialog", {name: "Start a run"});
    await form.getByLabel("Workflow").selectOption("draft");
    await form.getByRole("button", {name: "Start"}).click();
    await form.getByText("is required").waitFor();
    await form.getByLabel("topic").fill("lanterns");
    await form.getByLabel("tone").selectOption("warm");
    await form.getByText("Title, tags and more").click();
    await form.getByLabel("Title").fill("Lantern note");
    await form.getByLabel("Tags").fill("light, night");
    await form.getByRole("button", {name: "Start"}).click();
    await page.getByRole("heading", {name: /Lantern note/}).waitFor();

    await page.locator('[data-draft="stdout"]').getByText("still about lanterns").waitFor();
    await page.locator('.bar-span.running').waitFor();
    assert.match(await on.place.wf("ls"), /running/); // others use the store meanwhile
    await on.place.release();
    await page.locator('[data-waiting="editor#1"]').waitFor();
    assert.equal(await page.locator("[data-draft]").count(), 0, "what the journal has is no draft any more");
    await status(page, "waiting");
    await page.locator('[data-waiting="editor#1"]').getByRole("button", {name: "Publish it"}).click();
    await status(page, "done");
    assert.equal(await page.locator("[data-waiting]").count(), 0);
    await page.locator(".wfg .node.end.reached").waitFor(); // the path goes to the end
    assert.equal(await page.locator('.wfg .arc.taken[data-to="END"]').count(), 1);
    assert.equal(await page.locator(".wfg .node.fail.idle").count(), 1);

    const id = decodeURIComponent((await page.evaluate(() => location.hash)).match(/run\/([^?]+)/)[1]);
    const run = await get(page, `/v1/runs/${id}`);
    assert.deepEqual(run.info.tags, ["light", "night"]);
    assert.deepEqual(run.info.inputs, {tone: "warm", topic: "lanterns", words: 120});
    await page.getByRole("tab", {name: "Verify"}).click();
    await page.getByRole("button", {name: "Verify"}).click();
    await page.locator("[data-verified]").waitFor();
    check();
  });

  test("F-311, F-310: at work is what is being said now; beside the time at work is that of the clock, and when it ended", async (t) => {
    await on.place.hold(t);
    await on.place.write("talks.yaml", `wf: 1\nname: talks\nroles: {talk: {run: 'i=0; while [ -e hold ]; do i=$((i + 1)); echo "line $i"; sleep 0.1; done'}}\n`);
    await on.place.trust();
    const {page, check} = await visit(t);
    const id = await begin(page, "talks");
    await open(page, id);
    const line = page.locator(".outcome .named .line");
    const said = async () => Number(/line (\d+)/.exec(await line.innerText().catch(() => ""))?.[1] ?? 0);
    await until("something is said", async () => (await said()) > 0);
    const first = await said();
    await until("what is said now is shown", async () => (await said()) > first + 5);
    await page.locator(".figures").getByText(/\d+\.\d s so far/).waitFor();
    assert.equal(await page.locator(".figures").getByText("ended").count(), 0);
    await on.place.release();
    await status(page, "done");
    const run = await get(page, `/v1/runs/${id}`);
    assert.equal(run.ended, run.updated);
    assert.ok(Math.abs(run.wall_ms - (Date.parse(run.ended) - Date.parse(run.started))) <= 1);
    await page.locator(".figures").getByText("ended").waitFor();
    await page.locator(".figures").getByText(`${(run.wall_ms / 1000).toFixed(1)} s in all`).waitFor();
    check();
  });

  test("K-12: choices are buttons, the primary one first; details and timing are shown", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "clocks"}, {
      title: "Clocks", description: "About clocks", type: "general", scope: "bench", tags: ["time"], target_user: "ben", request_id: "clocks-1",
    });
    assert.equal(await begin(page, "draft", {topic: "clocks"}, {request_id: "clocks-1"}), id, "the same request starts nothing twice");
    await open(page, id);
    const asks = page.locator('[data-waiting="editor#1"]');
    await asks.waitFor();
    assert.deepEqual(await asks.locator("[data-choice]").allInnerTexts(), ["Publish it", "Change it", "Drop it"]);
    assert.ok(await asks.locator("[data-choice]").first().evaluate((b) => b.classList.contains("primary")));
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
    for (const shown of ["About clocks", "general", "bench", "time", run.info.created_by, "ben", "clocks-1"]) await pane.getByText(shown, {exact: true}).first().waitFor();
    check();
  });

  test("F-38: a tool call is shown whole, no answer is the default, and a denial has a reason", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "danger", {});
    await open(page, id);
    const asks = page.locator('[data-waiting="agent#1"]');
    await asks.waitFor();
    const text = await asks.locator("pre").innerText();
    assert.match(text, /\+\\u\{202e\}building building/);
    assert.match(text, /\+the last line\n$/);
    assert.deepEqual(await asks.locator("[data-choice]").allInnerTexts(), ["Allow once", "Allow exactly this for the whole run", "Deny"]);
    assert.equal(await asks.locator(".primary").count(), 0);
    const {waiting} = await get(page, `/v1/runs/${id}`);
    assert.match(waiting[0].shown, /^[0-9a-f]{64}$/);
    const sent = page.waitForRequest((r) => r.url().endsWith("/answer"));
    await asks.getByLabel("Why, if you deny it").fill("not in this directory");
    // Until the page has read the whole call there is no answer to it.
    await asks.getByRole("button", {name: "Deny", disabled: false}).click();
    assert.deepEqual((await sent).postDataJSON(), {step: "agent#1", choice: "deny", text: "not in this directory", shown: waiting[0].shown});
    await status(page, "done");
    await page.getByText("a person denied this call: not in this directory").first().waitFor({state: "attached"});
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

  test("the files that a step keeps are listed, and saved one by one", async (t) => {
    const {page, check} = await visit(t, {viewport: {width: 700, height: 900}});
    const id = await begin(page, "keeping");
    await open(page, id);
    await status(page, "done");
    await page.getByRole("tab", {name: "Output"}).click();
    const files = page.getByRole("region", {name: "files that the step keeps"});
    const hostile = 'kept/<img src=x onerror="document.title=1">.html';
    const row = (path) => files.locator("tbody tr").filter({has: page.getByText(path, {exact: true})});
    await files.locator("tbody tr").first().waitFor();
    assert.equal(await files.locator("tbody tr").count(), 100);
    await page.getByRole("button", {name: "Show more files"}).click();
    await row("kept/report.txt").waitFor();
    assert.equal(await files.locator("tbody tr").count(), 153);
    assert.equal(await page.getByRole("button", {name: "Show more files"}).count(), 0);
    assert.match(await row("kept/report.txt").innerText(), /12 B\s+file/);
    assert.match(await row("kept/pipe").innerText(), /not kept: a socket, pipe or device/);
    assert.equal(await row("kept/pipe").getByRole("button").count(), 0);
    await accessible(page, "files");
    await fits(page, "files");
    for (const [path, name, content] of [["kept/report.txt", "report.txt", "all is well\n"], [hostile, null, "<script>document.title = 1</script>\n"]]) {
      const saved = page.waitForEvent("download");
      await row(path).getByRole("button", {name: /download/}).click();
      const file = await saved;
      if (name) assert.equal(file.suggestedFilename(), name);
      else assert.doesNotMatch(file.suggestedFilename(), /[<>"/]/);
      assert.equal(await readFile(await file.path(), "utf8"), content);
    }
    assert.match(await page.title(), /keeping/, "nothing of a file was run");

    // The run is deleted meanwhile: that is said, and nothing is saved.
    await on.place.wf("rm", id, "--yes");
    await row("kept/report.txt").getByRole("button", {name: /download/}).click();
    await page.getByRole("alert").getByText("was deleted").first().waitFor();
    check(/40[14]|410/);
  });

  test("the files that a step changed are listed as wf files does, by keyboard, and saved", async (t) => {
    const {page, check} = await visit(t, {viewport: {width: 700, height: 900}});
    const id = await begin(page, "changing");
    await open(page, id);
    await status(page, "done");
    await page.locator('[data-step="second#1"]').click();
    await page.getByRole("tab", {name: "Output"}).click();
    const opener = page.getByRole("button", {name: "Changed files"});
    assert.equal(await opener.getAttribute("aria-expanded"), "false");
    await opener.press("Enter");
    const files = page.getByRole("region", {name: "files that changed in the step"});
    await files.locator("tbody tr").first().waitFor();
    assert.equal(await opener.getAttribute("aria-expanded"), "true");
    const told = JSON.parse(await on.place.wf("files", `${id}:second#1`, "--changed", "-o", "json")).files;
    assert.deepEqual(told.slice(0, 4).map((f) => f.change), ["added", "changed", "removed", "added"]);
    assert.equal(await files.locator("tbody tr").count(), 100);
    await page.getByRole("button", {name: "Show more files"}).press("Enter");
    await files.locator("tbody tr").nth(told.length - 1).waitFor();
    const rows = await files.locator("tbody tr").evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
    assert.deepEqual(rows.map((r) => [r[0].slice(2), r[1], r[4]]), told.map((f) => [f.change, f.path, f.by.join(", ")]));
    assert.equal(rows.length, 153);
    assert.deepEqual(rows.slice(0, 4).map((r) => r[0][0]), ["+", "~", "−", "+"]);
    await accessible(page, "changed files");
    await fits(page, "changed files");
    for (const [path, content] of [["changing/edited", "new\n"], ["changing/gone", "bye\n"]]) {
      const saved = page.waitForEvent("download");
      await page.getByRole("button", {name: `download ${path}`}).press("Enter");
      assert.equal(await readFile(await (await saved).path(), "utf8"), content);
    }
    assert.match(await page.title(), /changing/, "nothing of a file was run");
    await opener.press("Enter");
    await files.waitFor({state: "detached"});
    await page.locator('[data-step="third#1"]').click();
    await page.getByRole("heading", {name: "third#1"}).waitFor();
    assert.equal(await opener.count(), 0, "a step that cannot write has none");
    check();
  });

  test("a form is filled in, and its values are checked", async (t) => {
    const {page, check} = await visit(t);
    await open(page, await begin(page, "form"));
    const asks = page.locator("[data-waiting]");
    await asks.getByRole("button", {name: "Answer"}).click();
    await asks.getByText("is required").waitFor();
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
    await page.locator('[data-waiting="editor#2"]').getByRole("button", {name: "Publish it"}).click();
    await status(page, "done"); // the axis of a run that goes on moves, and with it what lies at a place
    const last = await seq(page);
    const steps = page.locator("[data-step]");
    assert.equal(await steps.count(), 5);
    const slider = page.getByRole("slider");
    const clickMiddle = async () => {
      const box = await slider.boundingBox();
      await page.mouse.click(box.x + box.width * 0.5, box.y + box.height / 2);
    };
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
    await clickMiddle();
    await until("another event is shown", async () => (await seq(page)) > 1);
    const middle = await seq(page);
    assert.ok(middle < last, String(middle));
    assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`^event ${middle} of ${last}: `));
    await until("the address has the place", () => page.evaluate((m) => location.hash.includes(`seq=${m}`), middle));
    await page.reload();
    await page.locator(`[data-seq="${middle}"]`).waitFor();
    await page.evaluate(() => (location.hash = location.hash.replace(/seq=\d+/, "seq=2"))); // a link to another place
    await page.locator('[data-seq="2"]').waitFor();
    await slider.focus();
    await page.keyboard.press("End");
    await page.locator(`[data-seq="${last}"]`).waitFor();
    await page.locator('[data-role="writer"] + .badge', {hasText: "2×"}).waitFor();
    await clickMiddle();
    await page.locator(`[data-seq="${middle}"]`).waitFor();
    await page.getByRole("button", {name: "replay"}).click();
    await page.getByRole("button", {name: "pause"}).waitFor();
    await until("the replay reaches the end", async () => (await seq(page)) === last && (await page.getByRole("button", {name: "replay"}).count()) === 1);
    check();
  });

  test("a link that is followed while the place is about to be written is not lost", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "tea"});
    await page.clock.install();
    await page.reload();
    await open(page, id);
    await page.locator('[data-waiting="editor#1"]').waitFor();
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await page.getByRole("slider").focus();
    for (let ms = 180; ms < 320; ms += 10) { // at one of these times the place is about to be written
      await page.keyboard.press("Home");
      await page.clock.runFor(ms);
      const to = 2 + (ms / 10) % 2; // another one than before: the address has to change
      await page.evaluate((n) => new Promise((done) => {
        addEventListener("hashchange", done, {once: true});
        location.hash = `${location.hash.split("?")[0]}?seq=${n}`;
      }), to);
      await page.clock.runFor(1000);
      assert.equal(await seq(page), to, `a link followed after ${ms} ms`);
      assert.match(await page.evaluate(() => location.hash), new RegExp(`seq=${to}$`));
    }
    check();
  });

  test("a run whose process was killed is called interrupted, and resumed", async (t) => {
    await on.place.hold(t);
    const {page, check} = await visit(t);
    const driver = on.place.spawn("run", "draft.yaml", "-i", "topic=killed", "--title", "Killed", "-q");
    await page.getByRole("link", {name: "Killed"}).click();
    await page.locator('[data-step="facts#1"] .s-running').waitFor();
    await status(page, "running");
    driver.kill("SIGKILL");
    await driver.ended;
    await status(page, "interrupted");
    assert.equal(await page.getByRole("button", {name: "Suspend"}).count(), 0);
    await page.locator("[data-step] .s-interrupted").waitFor();
    await page.getByRole("link", {name: "Runs", exact: true}).first().click();
    await page.locator("tr", {hasText: "Killed"}).locator(".s-interrupted").waitFor();
    await page.getByRole("link", {name: "Killed"}).click();
    await status(page, "interrupted");
    await on.place.release();
    await page.getByRole("button", {name: "Resume…"}).click();
    await page.getByRole("dialog").getByRole("button", {name: "Resume"}).click();
    await status(page, "waiting");
    check();
  });

  test("a command that failed shows what it put out, the run is resumed, suspended and cancelled", async (t) => {
    const {page, check} = await visit(t);
    await open(page, await begin(page, "broken"));
    await status(page, "suspended");
    const pane = page.getByRole("tabpanel");
    await pane.getByText("undefined: frobnicate").waitFor();
    await pane.getByText("exit status 2").first().waitFor();
    await on.place.write("mended", "");
    await page.getByRole("button", {name: "Resume…"}).click();
    await page.getByRole("dialog").getByRole("button", {name: "Resume"}).click();
    await pane.getByText("at it").first().waitFor();
    await status(page, "running");
    await page.getByRole("button", {name: "Suspend"}).click();
    await status(page, "suspended");
    await page.getByRole("button", {name: "Cancel…"}).click();
    await page.getByRole("dialog").getByRole("button", {name: "Cancel the run"}).click();
    await status(page, "cancelled");
    check();
  });

  test("what a step put out is shown, also when it ended between what was read and what is followed", async (t) => {
    await on.place.hold(t);
    const {page, check} = await visit(t);
    const id = await begin(page, "draft", {topic: "gaps"});
    await until("its first step is at work", async () => (await get(page, `/v1/runs/${id}`)).steps[0]?.status === "running");
    let first = true;
    await page.route(`**/v1/runs/${id}`, async (r) => {
      if (!first) return r.continue();
      first = false;
      const response = await r.fetch();
      await on.place.release();
      await until("the run waits", async () => (await get(page, `/v1/runs/${id}?limit=1`)).status === "waiting");
      await r.fulfill({response});
    });
    await page.evaluate((h) => (location.hash = h), `#/run/${id}?step=facts%231`);
    await status(page, "waiting");
    await page.getByRole("tabpanel").getByText("second fact").waitFor();
    check();
  });

  test("the fields of a sub-workflow's form are in the order in which its file has them", async (t) => {
    const {page, check} = await visit(t);
    await open(page, await begin(page, "asking"));
    const asks = page.locator("[data-waiting]");
    await asks.getByRole("button", {name: "Answer"}).waitFor();
    assert.deepEqual(await asks.locator("input").evaluateAll((all) => all.map((i) => i.name)), ["zip", "name", "age"]);
    check();
  });

  test("an answer that did not fit the declared output shows why", async (t) => {
    const {page, check} = await visit(t);
    await open(page, await begin(page, "hasty"));
    await status(page, "done");
    const said = page.getByRole("tabpanel").locator("details", {hasText: "does not fit the declared output"});
    await said.locator("summary").click();
    await said.locator("pre", {hasText: "must begin with a line ---"}).waitFor();
    const list = await events(page);
    await page.getByRole("group", {name: "Types of events"}).getByRole("button", {name: /^correction 1/}).click();
    await list.getByRole("option", {name: /must begin with a line ---/}).waitFor();
    check();
  });

  test("the step of a sub-workflow leads to its run, and back", async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "outer");
    await open(page, id);
    await status(page, "done");
    await page.getByRole("tabpanel").getByRole("link", {name: /^Its own run/}).click();
    await page.getByRole("heading", {name: /^inner/}).waitFor();
    await page.getByRole("link", {name: `part of ${id}`}).click();
    await page.getByRole("heading", {name: /^outer/}).waitFor();
    check();
  });

  test("the graph's nodes choose steps, and events replay to their place", async (t) => {
    const {page, check} = await visit(t);
    await open(page, await begin(page, "draft", {topic: "tea"}));
    await page.locator("[data-waiting]").waitFor();
    await page.getByRole("button", {name: /^writer .*, ok/}).click();
    await page.locator('[data-step="writer#1"][aria-current="true"]').waitFor();
    const list = await events(page);
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
    const list = await events(page);
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
    const asked = await page.locator("[data-waiting] .asked").innerText();
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
