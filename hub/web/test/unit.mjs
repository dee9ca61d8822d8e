// Runs the tests of the pure parts:  node test/unit.mjs
// The sources are TypeScript; esbuild makes of each test one module that node's runner takes.
import {build} from "esbuild";
import {spawnSync} from "node:child_process";
import {mkdtemp, readdir, rm} from "node:fs/promises";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {fileURLToPath} from "node:url";

const here = fileURLToPath(new URL("unit/", import.meta.url));
const out = await mkdtemp(join(tmpdir(), "wf-web-"));
try {
  const tests = (await readdir(here)).filter((f) => f.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((f) => here + f), outdir: out, outExtension: {".js": ".mjs"},
    bundle: true, platform: "node", format: "esm", target: "node20", logLevel: "warning",
  });
  const run = spawnSync(process.execPath, ["--test", ...tests.map((f) => join(out, f.replace(/ts$/, "mjs")))], {stdio: "inherit"});
  process.exitCode = run.status ?? 1;
} finally {
  await rm(out, {recursive: true, force: true});
}
