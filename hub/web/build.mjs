// Builds dist from src:  node build.mjs [DIR]
// The same sources give the same bytes: dist is committed and CI builds it again.
// Beside each file that is worth it lies what it is compressed to; other versions of node may compress otherwise.
import {build} from "esbuild";
import {cp, mkdir, readdir, readFile, rm, writeFile} from "node:fs/promises";
import {fileURLToPath} from "node:url";
import {brotliCompressSync, constants, gzipSync} from "node:zlib";

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
  // createElement(name, props, ...children) takes a twentieth less room than jsx(name, {...props, children: […]}).
  tsconfigRaw: {compilerOptions: {jsx: "react", jsxFactory: "createElement", jsxFragmentFactory: "Fragment", strict: true, target: "ES2022"}},
  inject: ["src/jsx.ts"],
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
await cp(here + "src/index.html", out + "/index.html");
await cp(here + "src/icon.svg", out + "/assets/icon.svg");
for (const name of await readdir(out + "/assets")) {
  const body = await readFile(`${out}/assets/${name}`);
  if (body.length < 1024) continue;
  await writeFile(`${out}/assets/${name}.br`, brotliCompressSync(body, {params: {[constants.BROTLI_PARAM_SIZE_HINT]: body.length}}));
  await writeFile(`${out}/assets/${name}.gz`, gzipSync(body, {level: 9}));
}
