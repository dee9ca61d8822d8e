#!/usr/bin/env bash
# Checks the page without a browser: types, the tests of its pure parts, and that dist is what
# the sources build to.
set -euo pipefail
cd "$(dirname "$0")"

npm ci --ignore-scripts --no-fund --no-audit
npm run --silent types
npm run --silent unit

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
node build.mjs "$built/dist"
stale() {
	echo "dist is not what src builds to: npm run build in hub/web, and commit it"
	exit 1
}
diff -r -x '*.br' -x '*.gz' dist "$built/dist" || stale
[ "$(cd dist/assets && ls)" = "$(cd "$built/dist/assets" && ls)" ] || stale
node -e '
const {readdirSync, readFileSync} = require("node:fs"), {brotliDecompressSync, gunzipSync} = require("node:zlib");
for (const f of readdirSync("dist/assets")) {
	const open = {br: brotliDecompressSync, gz: gunzipSync}[f.split(".").at(-1)];
	if (open && !open(readFileSync("dist/assets/" + f)).equals(readFileSync("dist/assets/" + f.slice(0, -3)))) process.exit(1);
}' || stale
echo "dist is what src builds to, $(cat dist/index.html dist/assets/*.{js,css,svg} | wc -c) bytes, $(cat dist/index.html dist/assets/*.br dist/assets/*.svg | wc -c) of them sent"
