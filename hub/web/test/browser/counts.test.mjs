// What the page counts is true of an event, or is said to be unread: its own state, in Node, follows runs of the real
// program and is compared with what that says of the same event. WF_LONG=1 makes the fan-outs longer.
import assert from "node:assert/strict";
import {rm} from "node:fs/promises";
import {connect, createServer} from "node:net";
import {join} from "node:path";
import {before, describe, test} from "node:test";
import {fileURLToPath, pathToFileURL} from "node:url";
import {build} from "esbuild";
import {begin, get, on, open, status, visit} from "./bench.mjs";
import {until} from "./stage.mjs";

const items = process.env.WF_LONG ? 3000 : 450;
const bad = (i) => i % 90 === 7;

const flow = `
wf: 1
name: counted
limits: {steps: 20000}
inputs: {n: {type: integer, default: ${items}}}
roles:
  list: {set: {items: "\${{ 0..(inputs.n - 1) }}"}}
  look:
    run: |
      [ "$ITEM" != 30 ] || while [ -e hold ]; do sleep 0.1; done
      [ $((ITEM % 90)) != 7 ] || { echo "404 Not Found"; exit 4; }
    env: {ITEM: "\${{ item }}"}
    continue_on_error: true
  strict: {run: '[ $((ITEM % 40)) != 3 ]', env: {ITEM: "\${{ item }}"}, retry: {attempts: 1}}
  tell: {set: {n: 1}}
edges:
  - {from: START, to: list}
  - {from: list, to: look, for_each: output.items, max_parallel: 8}
  - {from: look, to: strict, for_each: "0..99", max_parallel: 4}
  - {from: strict, to: tell}
  - {from: strict, to: tell, on: failure}
  - {from: tell, to: END}
`;

/** Where a WebSocket of node reaches the server as one of a page does: with the Origin of the page, which node does not send. */
async function doorway(t, url) {
  const door = createServer((from) => {
    const to = connect(Number(url.port), url.hostname);
    from.once("data", (head) => {
      to.write(head.toString("latin1").replace(/^host: .*$/im, `Host: ${url.host}\r\nOrigin: ${url.origin}`), "latin1");
      from.pipe(to).pipe(from);
    });
    for (const s of [from, to]) s.on("error", () => {}).on("close", () => (from.destroy(), to.destroy()));
  });
  t.after(() => door.close());
  await new Promise((go) => door.listen(0, "127.0.0.1", go));
  return `127.0.0.1:${door.address().port}`;
}

/** A page without a screen, signed in. */
async function headless(t) {
  const url = new URL(await on.server.login());
  const {fetch: fetched, setInterval: timer} = globalThis;
  const none = () => {};
  const storage = () => ({getItem: () => null, setItem: none, removeItem: none});
  Object.assign(globalThis, {
    location: {protocol: "http:", host: await doorway(t, url), hash: "", pathname: "/", search: ""}, history: {replaceState: none}, addEventListener: none,
    document: {hidden: false, documentElement: {dataset: {}}, addEventListener: none}, localStorage: storage(), sessionStorage: storage(),
    requestAnimationFrame: (f) => setTimeout(() => f(performance.now()), 16), cancelAnimationFrame: clearTimeout,
    setInterval: (f, ms) => timer(f, ms).unref(), // for what the page does until it is left
    fetch: (path, init) => fetched(new URL(path, url), {...init, headers: {...init.headers, Origin: url.origin}}),
  });
  const file = join(on.place.dir, "page.mjs");
  await build({entryPoints: [fileURLToPath(new URL("../live/page.ts", import.meta.url))], outfile: file, bundle: true, format: "esm", platform: "node", logLevel: "warning"});
  const page = await import(pathToFileURL(file));
  await page.login(/code=([^&]+)/.exec(url.hash)[1]);
  assert.equal(page.locked.value, null);
  await until("the page is connected", () => page.link.value === "open");
  t.after(() => page.replay.stop());
  return page;
}

/** Follows a run until the end of the test. */
async function follow(t, page, id) {
  const run = new page.Run(id);
  run.start();
  t.after(() => run.stop());
  await until("the run is read", () => run.ready.value);
  return run;
}

const seen = (run) => [...run.fansAt(null).values()].map((f) => ({id: f.id, partial: f.partial, seq: f.seq, of: f.of, counts: Object.fromEntries(f.counts), head: run.head.seq}));

const stateOf = (s) => s.status === "ok" && s.action === "run" && s.output.exit_code ? "nonzero" : s.status;

/** What wf says of the items of a fan-out, in the words of the page. */
function told(view, fan) {
  const counts = {};
  for (const s of view.steps) if (s.id.startsWith(`${fan}[`)) counts[stateOf(s)] = (counts[stateOf(s)] ?? 0) + 1;
  return counts;
}

const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
const ended = ["ok", "nonzero", "failed", "skipped", "unread"];

/** Asserts that counts are those that wf tells, but for items that are said to be unread. */
function agrees(f, truth) {
  const said = JSON.stringify({f, truth});
  assert.equal(sum(f.counts), f.of, said);
  if (f.partial) assert.ok(sum(f.counts) <= sum(truth), said);
  else assert.equal(sum(f.counts), sum(truth), said);
  let unread = f.counts.unread ?? 0;
  for (const state of new Set([...Object.keys(f.counts), ...Object.keys(truth)])) {
    if (state === "unread") continue;
    const lacks = (truth[state] ?? 0) - (f.counts[state] ?? 0);
    assert.ok(lacks >= 0, `${state}: ${said}`);
    if (lacks > 0 && !f.partial) {
      assert.ok(ended.includes(state), `${state}: ${said}`);
      unread -= lacks;
    }
  }
  if (!f.partial) assert.equal(unread, 0, said);
}

describe("the counts of a fan-out that is followed", () => {
  let exact;
  before(async () => {
    await on.place.write("counted.yaml", flow);
    await on.place.trust();
    exact = {ok: items - Array.from({length: items}, (_, i) => i).filter(bad).length, nonzero: Array.from({length: items}, (_, i) => i).filter(bad).length};
  });

  test("they are those of wf show after the same event, at any moment, from the first event on and from the middle", {timeout: 390_000}, async (t) => {
    t.after(() => rm(join(on.place.dir, "hold"), {force: true}));
    await on.place.write("hold", "");
    const {page: screen} = await visit(t);
    const id = await begin(screen, "counted");
    const page = await headless(t);
    const runs = [await follow(t, page, id)];
    const at = async (seq) => get(screen, `/v1/runs/${id}?at=${seq}&limit=${items * 2}`);
    const compare = async () => {
      for (const f of runs.flatMap(seen)) agrees(f, told(await at(f.seq), f.id));
    };
    let samples = 0;
    while (!runs[0].head.final) {
      const next = runs[0].head.seq + 1 + Math.floor(Math.random() * items / 4);
      await until("more happens, or it ends", () => runs[0].head.final || runs[0].head.seq >= next);
      await compare();
      samples++;
      if (samples === 3) await rm(join(on.place.dir, "hold"));
      if (runs.length === 1 && runs[0].head.seq > 1500) runs.push(await follow(t, page, id));
    }
    runs.push(await follow(t, page, id));
    const view = JSON.parse(await on.place.wf("show", id, "-o", "json"));
    for (const run of runs) {
      await until("all is counted", () => seen(run).every((f) => f.seq === view.seq && !f.partial && !f.counts.unread));
      for (const f of seen(run)) assert.deepEqual(f.counts, told(view, f.id), f.id);
      assert.deepEqual(seen(run).map((f) => f.id), ["look#1", "strict#1"]);
      assert.deepEqual(seen(run)[0].counts, exact);
      assert.equal(run.head.count, view.steps.length);
      const failed = run.stepsAt(null).filter((s) => run.statusOf(s) === "nonzero").map((s) => s.id);
      assert.deepEqual(failed.sort(), view.steps.filter((s) => stateOf(s) === "nonzero").map((s) => s.id).sort(), "each of them is listed");
    }
    t.diagnostic(`${items} items, compared at ${samples} moments`);
  });

  test("on the screen they are those of wf show when it has ended, and each item that failed is listed", {timeout: 390_000}, async (t) => {
    const {page, check} = await visit(t);
    const id = await begin(page, "counted");
    await open(page, id);
    await status(page, "done");
    const fan = page.locator('[data-fan="look#1"]');
    await fan.getByText(` ${items.toLocaleString("en")} items`).waitFor();
    await until("all is counted", async () => JSON.stringify(await fan.locator(".chip").allInnerTexts()) === JSON.stringify([`${exact.nonzero} exit not 0`, `${exact.ok.toLocaleString("en")} ok`]));
    await until("what failed is listed", async () => (await page.locator("[data-step^='look#1[']").count()) === Math.min(exact.nonzero, 20) || (await page.locator("[data-step^='look#1[']").count()) === exact.nonzero);
    check();
  });
});
