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
diff -r dist "$built/dist" || {
	echo "dist is not what src builds to: npm run build in hub/web, and commit it"
	exit 1
}
echo "dist is what src builds to, $(du -cb dist/index.html dist/assets/* | tail -1 | cut -f1) bytes"
