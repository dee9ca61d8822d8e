// A server, a browser and a page that is signed in: what the tests of one daemon share.
import {after, before} from "node:test";
import {openBrowser, openPage, Place, Server} from "./stage.mjs";

/** Filled before the first test of a file. */
export const on = {place: null, server: null, browser: null};

before(async () => {
  on.place = await Place.make();
  on.server = await Server.start(on.place);
  on.browser = await openBrowser();
});
after(async () => {
  await on.browser?.close();
  await on.place?.close();
});

/** A page that is signed in, until the end of the test. */
export async function visit(t, options = {}) {
  const p = await openPage(on.browser, on.server.url, options);
  t.after(() => p.close());
  await p.page.goto(await on.server.login());
  await p.page.getByRole("heading", {name: "Runs"}).waitFor();
  return p;
}

/** Starts a run over the interface, as another client would. */
export async function begin(page, workflow, inputs = {}, more = {}) {
  return page.evaluate(async (body) => {
    const r = await fetch("/v1/runs", {method: "POST", headers: {"Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem("wf-session")}`}, body: JSON.stringify(body)});
    if (!r.ok) throw new Error(await r.text());
    return (await r.json()).id;
  }, {workflow, inputs, ...more});
}

export const get = (page, path) => page.evaluate(async (p) => (await fetch(p, {headers: {Authorization: `Bearer ${sessionStorage.getItem("wf-session")}`}})).json(), path);

/** Goes to a run. */
export async function open(page, id) {
  await page.evaluate((h) => (location.hash = h), `#/run/${id}`);
  await page.locator("h1 .status").waitFor();
}

export const status = (page, s) => page.locator(`h1 .s-${s}`).waitFor();
export const seq = async (page) => Number(await page.locator("[data-seq]").getAttribute("data-seq"));
