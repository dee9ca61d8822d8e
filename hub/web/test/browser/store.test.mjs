// What belongs to a store and to no run.
import assert from "node:assert/strict";
import {mkdir} from "node:fs/promises";
import {createServer} from "node:http";
import {join} from "node:path";
import {test} from "node:test";
import {begin, get, on, open, status, visit} from "./bench.mjs";
import {accessible, fits} from "./stage.mjs";

const soon = {timeout: 40_000}; // what is shown is read again every 10 seconds

test("a notification that was given up is seen with its reason, and attempted again", async (t) => {
  let says = 410;
  const receiver = createServer((q, a) => q.resume().on("end", () => a.writeHead(says).end("<b>no such hook</b>")));
  await new Promise((go) => receiver.listen(0, "127.0.0.1", go));
  t.after(() => receiver.close());
  await on.place.write("told.yaml", `wf: 1\nname: told\nnotify: [{name: ops, on: waiting, webhook: "http://127.0.0.1:${receiver.address().port}/key"}]\nroles: {gate: {ask: "Go on?"}}\n`);
  await on.place.trust();
  const {page, check} = await visit(t, {viewport: {width: 400, height: 800}});
  const id = await begin(page, "told");
  await open(page, id);
  await page.getByRole("tab", {name: "Job"}).click();
  await page.getByRole("link", {name: "about this run"}).click();
  await page.getByRole("heading", {name: "Notifications"}).waitFor();
  const row = page.locator("[data-notification]");
  await row.locator(".s-dead").waitFor(soon);
  assert.match(await row.innerText(), /waiting[\s\S]*gate#1[\s\S]*it answered 410 Gone: <b>no such hook<\/b>/);
  const sinks = page.getByRole("region", {name: "where notifications go"});
  assert.match(await sinks.innerText(), /workflow\/told\/ops\s+what its workflow says\s+everything\s+0\s+0\s+1/);
  await accessible(page, "notifications");
  await fits(page, "notifications");
  says = 204;
  await row.getByRole("button", {name: /^retry msg_/}).click();
  await page.getByText("1 notification will be attempted again").waitFor();
  await row.locator(".s-delivered").waitFor(soon);
  assert.equal(await row.getByRole("button").count(), 0);
  await page.getByRole("button", {name: /about run/}).click();
  await row.first().waitFor();
  await row.getByRole("link", {name: `run ${id} gate#1`}).click();
  await status(page, "waiting");
  check();
});

test("runs that were deleted are listed, and what is said of them is text", async (t) => {
  const {page, check} = await visit(t, {viewport: {width: 400, height: 800}});
  await page.getByRole("link", {name: "Deleted"}).click();
  await page.getByText("No run was deleted").waitFor();
  await accessible(page, "no deletions");
  const id = await begin(page, "inner");
  await open(page, id);
  await status(page, "done");
  await on.place.wf("rm", id, "--yes", "--why", "<img src=x onerror=alert(1)> held\u202e data");
  await page.getByRole("link", {name: "Deleted"}).click();
  const row = page.locator(`[data-deleted="${id}"]`);
  await row.waitFor(soon);
  assert.match(await row.innerText(), /<img src=x onerror=alert\(1\)> held data/);
  await accessible(page, "deletions");
  await fits(page, "deletions");
  check(/404|410/); // the run, while its page was open
});

test("a run that has ended is deleted by keyboard, and one that has not is not offered", async (t) => {
  const {page, check} = await visit(t, {viewport: {width: 400, height: 800}});
  const dialog = page.getByRole("dialog", {name: "Delete this run?"});
  const ask = page.getByRole("button", {name: "Delete…"});
  await on.place.write("stays.yaml", `wf: 1\nname: stays\nroles: {gate: {ask: "Go on?"}}\n`);
  const gate = await begin(page, "stays");
  await open(page, gate);
  await status(page, "waiting");
  await page.getByRole("button", {name: "Cancel…"}).waitFor();
  assert.equal(await ask.count(), 0, "what has not ended is not deleted");

  const id = await begin(page, "inner");
  await open(page, id);
  await status(page, "done");
  const fork = JSON.parse(await on.place.wf("fork", `${id}:${(await get(page, `/v1/runs/${id}`)).steps[0].id}`, "--after", "-o", "json")).id;
  await ask.press("Enter");
  await dialog.getByText("This cannot be undone.").waitFor();
  await dialog.getByText(new RegExp(`fork ${fork}, \\d`)).waitFor();
  await accessible(page, "delete-dialog");
  await fits(page, "delete-dialog");
  await page.keyboard.press("Escape");
  await dialog.waitFor({state: "detached"});
  assert.ok(await ask.evaluate((b) => b === document.activeElement), "the focus is where it was");
  await ask.press("Enter");
  await dialog.getByText("This cannot be undone.").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.closest(".lab")?.innerText.trim()), "Reason");
  await page.keyboard.type("<b>on request");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", {name: "Runs"}).waitFor();
  await page.locator(`[data-run="${id}"]`).waitFor({state: "detached"});
  await page.locator(`[data-run="${gate}"]`).waitFor();
  await page.evaluate((h) => (location.hash = h), `#/run/${id}`);
  await page.getByText("The run was deleted").waitFor();
  assert.match(await page.locator("#main").innerText(), new RegExp(`${id} was deleted[\\s\\S]*<b>on request`));
  await accessible(page, "a run that was deleted");
  check(/410/);
});

test("a sweep is followed while it is at work, and the trials that did not pass are found", async (t) => {
  await mkdir(join(on.place.dir, "swept"));
  await on.place.write("swept.yaml", `wf: 1\nname: swept\ninputs: {k: {type: integer}}\nroles: {a: {set: {k: "\${{ inputs.k }}"}}}\n`);
  const {page, check} = await visit(t, {viewport: {width: 400, height: 800}});
  await page.getByRole("link", {name: "Sweeps"}).click();
  await page.getByText("Nothing was compared").waitFor();
  await accessible(page, "no sweeps");
  // Its checks wait until the page has seen it at work.
  const swept = on.place.wf("sweep", "swept.yaml", "--dir", "swept", "-i", "k=1..4", "--check-sandbox", "off", "--check", `until [ -e '${on.place.dir}/go' ]; do sleep 0.05; done; read -r run; case $run in *'"k":3'*) echo '<b>not three</b>'; exit 1;; esac`);
  const row = page.locator("[data-table]");
  await row.locator(".s-running").waitFor(soon);
  await row.getByRole("link").click();
  await page.locator(".facts .s-running").waitFor(soon);
  await on.place.write("go", "");
  await swept;
  await page.locator(".facts .s-done").waitFor(soon);
  const trials = page.getByRole("region", {name: "trials"});
  assert.equal(await trials.locator("tbody tr").count(), 4);
  await accessible(page, "a sweep");
  await fits(page, "a sweep");
  await page.getByRole("button", {name: "1 trial not passed"}).click();
  assert.equal(await trials.locator("tbody tr").count(), 1);
  assert.match(await trials.innerText(), /failed[\s\S]*k=3[\s\S]*the check ended with 1: <b>not three<\/b>/);
  await trials.getByRole("link").click();
  await status(page, "done");
  await page.goBack();
  await page.locator(".facts .s-done").waitFor();
  check();
});
