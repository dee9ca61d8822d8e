// Runs the page against the real program in headless Chromium:  node test/browser.mjs [FILE…]
//
// WF names the program; without it, it is built. CHROMIUM names the browser; without it,
// /usr/bin/chromium. SHOTS names a directory for screenshots.
import {spawnSync} from "node:child_process";
import {existsSync} from "node:fs";
import {mkdtemp, readdir, rm} from "node:fs/promises";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {fileURLToPath} from "node:url";

const here = fileURLToPath(new URL("browser/", import.meta.url));
const temp = await mkdtemp(join(tmpdir(), "wf-page-"));
try {
  const env = {...process.env};
  env.NODE_OPTIONS = `${env.NODE_OPTIONS ?? ""} --experimental-websocket`; // which browsers have, and node by itself from 22 on
  env.CHROMIUM ||= "/usr/bin/chromium";
  if (!existsSync(env.CHROMIUM)) throw new Error(`${env.CHROMIUM} is missing: apt-get install chromium, or name another with CHROMIUM`);
  if (!env.WF) {
    env.WF = join(temp, "wf");
    const made = spawnSync("go", ["build", "-o", env.WF, "./cmd/wf"], {cwd: fileURLToPath(new URL("../../..", import.meta.url)), stdio: "inherit"});
    if (made.status !== 0) throw new Error("wf was not built");
  }
  const files = process.argv.length > 2 ? process.argv.slice(2) : (await readdir(here)).filter((f) => f.endsWith(".test.mjs")).map((f) => here + f);
  const run = spawnSync(process.execPath, ["--test", "--test-concurrency=1", "--test-timeout=400000", ...files], {stdio: "inherit", env});
  process.exitCode = run.status ?? 1;
} finally {
  await rm(temp, {recursive: true, force: true});
}
