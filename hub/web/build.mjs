// Builds dist from src:  node build.mjs [DIR]
// The same sources give the same bytes: dist is committed and CI builds it again.
import {build} from "esbuild";
import {cp, mkdir, rm} from "node:fs/promises";
import {fileURLToPath} from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? here + "dist";

await rm(out, {recursive: true, force: true});
await mkdir(out + "/assets", {recursive: true});
await build({
  absWorkingDir: here,
  entryPoints: {app: "src/main.tsx"},
  outdir: out + "/assets",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022", "chrome123", "firefox121", "safari17.5"],
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
await cp(here + "src/index.html", out + "/index.html");
await cp(here + "src/icon.svg", out + "/assets/icon.svg");
