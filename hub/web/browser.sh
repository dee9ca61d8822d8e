#!/usr/bin/env bash
# Runs the page against wf in headless Chromium. WF names the program, CHROMIUM the browser.
set -euo pipefail
cd "$(dirname "$0")"

CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if [ -z "$CHROMIUM" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "chromium is missing: install it, or name a browser with CHROMIUM"
		exit 1
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
	CHROMIUM=$(command -v chromium)
fi
export CHROMIUM

[ -d node_modules/playwright-core ] || npm ci --ignore-scripts --no-fund --no-audit
npm run --silent browser -- "$@"
