// What the tests of the page stand on: a directory with workflows, the real program, a browser.
import assert from "node:assert/strict";
import {execFile, spawn} from "node:child_process";
import {mkdtemp, readFile, rm, writeFile} from "node:fs/promises";
import {createServer} from "node:net";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {fileURLToPath} from "node:url";
import {promisify} from "node:util";
import {chromium} from "playwright-core";
import {counting} from "./flows.mjs";

const run = promisify(execFile);
const axe = await readFile(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** A directory of workflows with its own home, and the programs started in it. */
export class Place {
  static async make(flows = workflows) {
    const p = new Place();
    p.dir = await mkdtemp(join(tmpdir(), "wf-page-"));
    p.env = {
      PATH: process.env.PATH, HOME: p.dir, XDG_DATA_HOME: join(p.dir, "data"), XDG_STATE_HOME: join(p.dir, "state"), XDG_RUNTIME_DIR: join(p.dir, "rt"),
      XDG_CONFIG_HOME: join(p.dir, "config"), WF_STORE: join(p.dir, ".wf"), NO_COLOR: "1",
    };
    p.started = [];
    for (const [name, text] of Object.entries(flows)) await p.write(name, text);
    await p.trust();
    return p;
  }

  /** Trusts the workflows of the directory, as their user does before a daemon starts them. */
  async trust() {
    const files = JSON.parse(await this.wf("trust", "--list", "-o", "json")).items.filter((x) => !x.trusted).map((x) => x.file);
    if (files.length) await this.wf("trust", "--yes", ...files);
  }

  /** Runs wf to its end and gives what it printed; some tests expect it to fail. */
  async wf(...args) {
    return (await run(process.env.WF, args, {cwd: this.dir, env: this.env, maxBuffer: 1 << 28})).stdout;
  }

  /** Starts wf in the background. Its output is kept for when something goes wrong. */
  spawn(...args) {
    const child = spawn(process.env.WF, args, {cwd: this.dir, env: this.env, stdio: ["ignore", "pipe", "pipe"]});
    child.said = "";
    for (const s of [child.stdout, child.stderr]) s.on("data", (b) => (child.said += b));
    child.ended = new Promise((done) => child.once("exit", done));
    this.started.push(child);
    return child;
  }

  /** Makes the first step of draft.yaml wait in its middle, until release or the end of the test. */
  async hold(t) {
    t.after(() => this.release());
    await this.write("hold", "");
  }

  async write(name, text) {
    await writeFile(join(this.dir, name), text);
  }

  async release() {
    await rm(join(this.dir, "hold"), {force: true});
  }

  async close() {
    for (const c of this.started) c.kill("SIGKILL");
    await Promise.all(this.started.map((c) => c.ended));
    await rm(this.dir, {recursive: true, force: true, maxRetries: 5});
  }
}

/** wf serve with a port of its own, which it keeps over restarts. */
export class Server {
  constructor(place) {
    this.place = place;
  }

  static async start(place) {
    const s = new Server(place);
    s.port = await freePort();
    s.url = `http://127.0.0.1:${s.port}`;
    await s.up();
    return s;
  }

  async up() {
    this.child = this.place.spawn("serve", "--listen", "unix", "--listen", `127.0.0.1:${this.port}`, "--workflows", this.place.dir, "--name", "bench");
    await until(`wf serve answers at ${this.url}`, async () => {
      assert.equal(this.child.exitCode, null, this.child.said);
      return (await fetch(this.url + "/healthz").catch(() => null))?.ok;
    });
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.child.ended;
  }

  /** An address with a fresh code. */
  async login() {
    const out = await this.place.wf("serve", "--login");
    return out.split(/\s+/).find((w) => w.startsWith(this.url)) ?? assert.fail(`no address in ${out}`);
  }
}

/** wf hub with a port of its own, which it keeps over restarts. */
export class Hub {
  static async start(place) {
    const h = new Hub();
    h.place = place;
    h.port = await freePort();
    h.url = `http://127.0.0.1:${h.port}`;
    await h.up();
    return h;
  }

  async up() {
    this.child = this.place.spawn("hub", "--listen", `127.0.0.1:${this.port}`, "--data", join(this.place.dir, "hub"), "--name", "meeting", "-o", "json");
    const said = () => this.child.said.split("\n").slice(0, -1).find((l) => l.startsWith("{")); // its log may come first
    await until(`wf hub answers at ${this.url}`, async () => {
      assert.equal(this.child.exitCode, null, this.child.said);
      return said() && (await fetch(this.url + "/healthz").catch(() => null))?.ok;
    });
    this.told = JSON.parse(said());
  }

  /** Kills it and takes its memory of queue, agents and runs. */
  async lose() {
    this.child.kill("SIGKILL");
    await this.child.ended;
    await rm(join(this.place.dir, "hub", "hub.db"));
  }
}

/** wf serve as an agent of a hub. */
export class Agent {
  constructor(place, hub, name) {
    Object.assign(this, {place, hub, name});
    this.up();
  }

  up() {
    this.child = this.place.spawn("serve", "--listen", "unix", "--workflows", this.place.dir, "--name", this.name, "--hub", this.hub.url, "--hub-token-file", this.hub.told.agent_token_file);
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.child.ended;
  }
}

/** One browser for all tests of a file. */
export async function openBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
}

/**
 * A page that reports what must not happen: errors of the console, faults of scripts, requests
 * to anyone else. check() asserts that there were none but those that the test expects.
 */
export async function openPage(browser, own, options = {}) {
  const context = await browser.newContext({viewport: {width: 1360, height: 900}, ...options});
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const bad = [];
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") bad.push(`console: ${m.text()}`);
  });
  page.on("pageerror", (e) => bad.push(`script: ${e.stack}`));
  page.on("dialog", (d) => {
    bad.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  const foreign = (url) => !url.startsWith(own) && !url.startsWith(own.replace(/^http/, "ws"));
  page.on("request", (r) => foreign(r.url()) && bad.push(`request to ${r.url()}`));
  page.on("websocket", (w) => foreign(w.url()) && bad.push(`socket to ${w.url()}`));
  return {
    page,
    check(expected = /^$/) {
      assert.deepEqual(bad.filter((b) => !expected.test(b)), []);
    },
    close: () => context.close(),
  };
}

/** Waits for a condition that no event of the browser tells of. */
export async function until(what, f, ms = 60_000) {
  const end = Date.now() + ms;
  for (;;) {
    if (await f()) return;
    if (Date.now() > end) assert.fail(`waited in vain: ${what}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

/** Asserts that axe finds nothing on the page as it is; in the dark theme other colours are all that differs. */
export async function accessible(page, what) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const faults = (rules) => page.evaluate(async (only) => {
    const r = await globalThis.axe.run(document, {resultTypes: ["violations"], ...(only ? {runOnly: only} : {})});
    return r.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 4).map((n) => `${n.target.join(" ")} ${n.any.map((a) => a.message).join("; ")}`).join(" | ")}`);
  }, rules);
  await page.emulateMedia({colorScheme: "light"});
  assert.deepEqual(await faults(), [], what);
  await shot(page, `${what}-light`);
  await page.emulateMedia({colorScheme: "dark"});
  assert.deepEqual(await faults(["color-contrast"]), [], `${what}, dark`);
  await shot(page, `${what}-dark`);
}

/** Asserts that nothing is wider than the window. */
export async function fits(page, what) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `${what}: ${content} px in a window of ${window}`);
}

/** The list of events. */
export async function events(page) {
  await page.getByRole("tab", {name: "Events"}).click();
  return page.getByRole("listbox", {name: "Events"});
}

/** All events of the list by seq, read by paging through what is drawn of it. */
export async function journal(page, length) {
  const list = await events(page);
  await list.focus();
  await page.keyboard.press("Home");
  const seen = new Map();
  for (let pages = 0; seen.size < length && pages <= length; pages++) {
    for (const [n, type] of await list.getByRole("option").evaluateAll((rows) => rows.map((r) => [Number(r.dataset.event), r.querySelector(".ty").textContent]))) {
      seen.set(n, type);
    }
    await page.keyboard.press("PageDown");
  }
  return [...seen].sort(([a], [b]) => a - b);
}

export async function shot(page, name) {
  if (process.env.SHOTS) await page.screenshot({path: join(process.env.SHOTS, name.replaceAll(" ", "-") + ".png"), fullPage: true});
}

async function freePort() {
  const s = createServer();
  await new Promise((go) => s.listen(0, "127.0.0.1", go));
  const {port} = s.address();
  await new Promise((go) => s.close(go));
  return port;
}

/** The workflows of the tests, by file. */
export const workflows = {
  "draft.yaml": `
wf: 1
name: draft
description: A writer drafts, a person decides, the writer goes on with its own conversation
inputs:
  topic: {type: string, required: true, description: What to write about}
  tone: {type: string, enum: [plain, warm, formal], default: plain}
  words: {type: integer, default: 120}
limits: {steps: 30}
roles:
  facts:
    run: |
      echo "first fact about $TOPIC"
      while [ -e hold ]; do echo "still about $TOPIC"; sleep 0.1; done
      echo "second fact"
    env: {TOPIC: "\${{ inputs.topic }}"}
  writer:
    model: script/replies.yaml
    prompt: You write short, exact notes.
    tools: [list_files]
    output:
      type: object
      required: [status, summary]
      properties:
        status: {enum: [done, stuck]}
        summary: {type: string}
  editor:
    ask: |
      \${{ steps.writer.output.summary }}
      Publish this?
    choices:
      - {label: Change it, value: change}
      - {label: Publish it, value: publish, primary: true}
      - {label: Drop it, value: drop}
edges:
  - {from: START, to: facts}
  - {from: facts, to: writer, prompt: "Write about \${{ inputs.topic }}, in a \${{ inputs.tone }} tone.\\n\${{ output.text }}"}
  - {from: writer, to: editor}
  - {from: editor, to: writer, when: output.choice == "change", limit: 4, prompt: "Change it. \${{ output.text }}"}
  - {from: editor, to: END, when: output.choice == "publish"}
  - {from: editor, to: FAIL}
outputs:
  text: "\${{ steps.writer.output.summary }}"
`,
  "replies.yaml": `
writer#1:
  - {tool: list_files, args: {path: .}, usage: {input: 812, cached: 0, output: 20}}
  - {usage: {input: 900, cached: 768, output: 64}, thinking: "Short is good.", text: "---\\nstatus: done\\nsummary: A small thing.\\n---\\n# A small thing\\n\\nIt is small.\\n"}
writer#2:
  - {usage: {input: 1200, cached: 1024, output: 70}, text: "---\\nstatus: done\\nsummary: A small and kind thing.\\n---\\n# A small thing\\n\\nIt is small. It is kind.\\n"}
`,
  "danger.yaml": `
wf: 1
name: danger
roles:
  agent: {prompt: You work., tools: [write_file: ask], model: script/danger-replies.yaml, timeout: 1m}
edges:
  - {from: START, to: agent}
  - {from: agent, to: END}
`,
  "danger-replies.yaml": `
agent#1:
  - {tool: write_file, args: {path: danger.txt, content: "\\u202e${"building ".repeat(400)}\\nthe last line\\n"}}
  - {text: "Done."}
`,
  // What a model may say that is out to be more than text.
  "hostile.yaml": `
wf: 1
name: hostile
roles:
  says:
    run: |
      printf '<img src=x onerror="document.title=1"><script>alert(1)</script> \\033[31mred\\033[0m \\033]0;own\\007 [link](javascript:alert(1))'
  gate:
    ask: "\${{ steps.says.text }}"
    choices: [{label: "<b>bold</b> move", value: go, primary: true}]
edges:
  - {from: START, to: says}
  - {from: says, to: gate}
  - {from: gate, to: END}
`,
  // Files that an agent left behind, one of them called as if it were markup.
  "keeping.yaml": `
wf: 1
name: keeping
roles:
  build:
    run: |
      mkdir -p kept/many && echo "all is well" > kept/report.txt && mkfifo -m 600 kept/pipe || true
      echo '<script>document.title = 1</script>' > 'kept/<img src=x onerror="document.title=1">.html'
      i=0; while [ $i -lt 150 ]; do : > kept/many/$(printf %03d $i); i=$((i + 1)); done
    artifacts: ["kept/**"]
`,
  // Files that the second step changes; one of them is called as if it were markup.
  "changing.yaml": `
wf: 1
name: changing
workspace: {track: true, include: [changing]}
roles:
  first: {run: "rm -rf changing && mkdir changing && cd changing && echo one > kept && echo old > edited && echo bye > gone"}
  second: {run: "cd changing && echo new > edited && rm gone && echo hi > '<img src=x onerror=document.title=1>' && chmod +x edited && mkdir z && i=0; while [ $i -lt 150 ]; do : > z/$i; i=$((i + 1)); done"}
  third: {set: {x: 1}}
edges:
  - {from: START, to: first}
  - {from: first, to: second}
  - {from: second, to: third}
  - {from: third, to: END}
`,
  "broken.yaml": `
wf: 1
name: broken
roles:
  build:
    run: |
      [ -e mended ] || { echo "main.go:12:5: undefined: frobnicate"; exit 2; }
      while true; do echo "at it"; sleep 0.1; done
edges:
  - {from: START, to: build}
  - {from: build, to: END}
`,
  "inner.yaml": `
wf: 1
name: inner
roles: {say: {set: {word: "inside"}}}
outputs: {word: "\${{ steps.say.output.word }}"}
`,
  "outer.yaml": `
wf: 1
name: outer
roles: {part: {workflow: inner.yaml}}
`,
  "asked.yaml": `
wf: 1
name: asked
roles:
  who: {ask: "Who?", form: {type: object, properties: {zip: {type: string}, name: {type: string}, age: {type: integer}}}}
`,
  "asking.yaml": `
wf: 1
name: asking
roles: {part: {workflow: asked.yaml}}
`,
  // A model that forgets what it was to put out.
  "hasty.yaml": `
wf: 1
name: hasty
roles:
  judge:
    model: script/hasty-replies.yaml
    prompt: Judge.
    output: {type: object, required: [verdict], properties: {verdict: {enum: [good, bad]}}}
`,
  "hasty-replies.yaml": `
judge#1:
  - {text: "All is well."}
  - {text: "---\\nverdict: good\\n---\\nAll is well.\\n"}
`,
  "long.yaml": counting("long", 750),
  "form.yaml": `
wf: 1
name: form
roles:
  who:
    ask: Who is it for?
    form:
      type: object
      required: [name]
      properties:
        name: {type: string}
        age: {type: integer}
edges:
  - {from: START, to: who}
  - {from: who, to: END}
outputs: {name: "\${{ steps.who.output.name }}"}
`,
};

/** Types the code of an address where the page asks for it, and so stays where it was. */
export async function signIn(page, address) {
  await page.getByRole("heading", {name: "Sign in"}).waitFor({timeout: 40_000}); // the waits between tries have jitter
  await page.getByLabel("Code").fill(new URL(address).hash.slice("#code=".length));
  await page.keyboard.press("Enter");
}
