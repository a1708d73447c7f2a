#!/usr/bin/env bash
# Makes report.png, the picture at the top of the README, from the demo's own report.
# Needs Chromium (Debian's package `chromium`) and slotwise on the path.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
slotwise demo --quiet --language en --output-dir "$work/demo" > "$work/said"
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
  --disable-background-networking --disable-component-update --disable-sync \
  --user-data-dir="$work/profile" --hide-scrollbars --window-size=960,1560 \
  --screenshot="$here/report.png" "file://$work/demo/report.html"
