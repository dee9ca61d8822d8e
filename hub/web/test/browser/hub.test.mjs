import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {accessible, Agent, fits, Hub, journal, openBrowser, openPage, Place, signIn, workflows} from "./stage.mjs";

const places = {};
let hub, ada, browser;
before(async () => {
  places.hub = await Place.make({});
  places.ada = await Place.make();
  places.bob = await Place.make({"form.yaml": workflows["form.yaml"]});
  hub = await Hub.start(places.hub);
  ada = new Agent(places.ada, hub, "ada");
  new Agent(places.bob, hub, "bob");
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  for (const p of Object.values(places)) await p.close();
});

const back = {timeout: 40_000}; // the waits between tries have jitter, at the agent and in the page
const outage = /ERR_CONNECTION|WebSocket connection|ERR_EMPTY_RESPONSE|ERR_SOCKET|50[234]|40[149]/;

test("K-07: agent and hub are killed in the middle of a run, and the page shows all of it once, in order", async (t) => {
  await places.ada.hold(t);
  const {page, check, close} = await openPage(browser, hub.url);
  t.after(close);
  await page.goto(hub.told.listen[0].open);
  await page.getByRole("link", {name: "Workers"}).click();
  await page.getByText("connected").nth(1).waitFor(back);
  await page.getByText("ada", {exact: true}).waitFor();
  await page.getByText("bob", {exact: true}).waitFor();
  await accessible(page, "agents");

  await page.getByRole("navigation").getByRole("link", {name: "Runs"}).click();
  await page.getByRole("button", {name: "New run"}).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Workflow").selectOption("draft");
  await form.getByLabel("topic").fill("islands");
  await form.getByRole("button", {name: "Start"}).click();
  await page.locator('[data-draft="stdout"]').getByText("still about islands").waitFor();
  const id = (await page.evaluate(() => location.hash)).match(/run\/([^?]+)/)[1];

  await ada.kill();
  ada.up();
  await page.getByText("try 2").first().waitFor(back); // the visit that was cut off begins again
  await hub.lose();
  await page.locator('[data-link="lost"]').waitFor();
  await places.ada.release(); // the run goes on without the hub
  await hub.up();
  await signIn(page, hub.told.listen[0].open); // a restart logs out
  await page.locator('[data-link="open"]').waitFor(back);
  await page.locator('[data-waiting="editor#1"]').getByRole("button", {name: "Publish it"}).click(back);
  await page.locator("h1 .s-done").waitFor(back);

  const stored = (await places.ada.wf("replay", id, "-o", "jsonl")).trim().split("\n").map((l) => JSON.parse(l));
  assert.deepEqual(await journal(page, stored.length), stored.map((e) => [e.seq, e.type]));
  assert.equal(stored.filter((e) => e.type === "done").length, 1);

  await page.getByRole("navigation").getByRole("link", {name: "Runs"}).click();
  const row = page.locator(`[data-run="${id}"]`);
  await row.locator(".s-done").waitFor();
  assert.match(await row.innerText(), /ada/);

  // What is about a run is asked of the worker that has it: no worker is chosen.
  await page.goto(`${hub.url}/#/run/${id}`);
  await page.getByRole("tab", {name: "Job"}).click();
  await page.getByRole("link", {name: "about this run"}).click();
  await page.getByRole("button", {name: `about run ${id} ×`}).waitFor();
  await page.getByText("No notifications").waitFor();
  assert.equal(await page.getByRole("combobox", {name: "Worker"}).count(), 0);
  await page.getByRole("button", {name: `about run ${id} ×`}).click();
  await page.getByRole("combobox", {name: "Worker"}).waitFor();
  check(outage);
});

test("the queue shows the jobs of the hub", async (t) => {
  const {page, check, close} = await openPage(browser, hub.url, {viewport: {width: 400, height: 800}});
  t.after(close);
  const code = await page.request.post(hub.url + "/v1/codes", {headers: {Authorization: `Bearer ${await token()}`}});
  await page.goto(`${hub.url}/#code=${(await code.json()).code}`);
  await page.getByRole("link", {name: "Queue"}).click();
  await page.getByRole("heading", {name: "Queue"}).waitFor();
  await accessible(page, "queue");
  await fits(page, "queue");
  await page.getByRole("link", {name: "Workers"}).click();
  await page.getByText("connected").first().waitFor(back);
  await fits(page, "agents");
  // Of what belongs to a store each worker has its own.
  for (const name of ["Notifications", "Deleted"]) {
    await page.getByRole("link", {name}).click();
    await page.getByRole("combobox", {name: "Worker"}).selectOption({label: "bob"});
    await page.getByText(name === "Deleted" ? "No run was deleted" : "No notifications").waitFor();
    await accessible(page, `${name} of a worker`);
    await fits(page, name);
  }
  check();
});

test("F-314: of a long queue as much is drawn as can be read, and what is done to a job stands apart", async (t) => {
  const {page, check, close} = await openPage(browser, hub.url);
  t.after(close);
  const items = Array.from({length: 2000}, (_, i) => ({id: `job${i}`, workflow: "w", state: "dead", reason: "", why: "expired", run: "", agent: "", attempts: 3, priority: 0, since: "2026-01-01T00:00:00Z"}));
  await page.route("**/v1/queue", (r) => r.fulfill({json: {schema: "wf.queue/v1", items}}));
  const code = await page.request.post(hub.url + "/v1/codes", {headers: {Authorization: `Bearer ${await token()}`}});
  await page.goto(`${hub.url}/#code=${(await code.json()).code}`);
  await page.getByRole("link", {name: "Queue"}).click();
  await page.getByText("job199", {exact: true}).waitFor();
  const rows = page.locator(".list tbody tr");
  assert.equal(await rows.count(), 200);
  await page.getByRole("button", {name: "Show 200 more of 1800"}).click();
  await page.getByText("job399", {exact: true}).waitFor();
  assert.equal(await rows.count(), 400);
  const [retry, purge] = await Promise.all(["Retry", "Purge"].map((name) => rows.first().getByRole("button", {name}).boundingBox()));
  assert.ok(purge.x - retry.x - retry.width >= 6, "Retry and Purge do not touch");
  check();
});

async function token() {
  const {readFile} = await import("node:fs/promises");
  const lines = (await readFile(hub.told.token_file, "utf8")).split("\n");
  return lines.find((l) => l !== "" && !l.startsWith("#") && !l.includes(" agent")).split(/\s+/)[0];
}
