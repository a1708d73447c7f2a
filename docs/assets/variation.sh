#!/usr/bin/env bash
# Makes variation.svg, the picture of docs/background/variation.md, by a sweep of its example.
# Needs slotwise on the path.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
slotwise sweep "$here/../../workflows/examples/variation.yaml" --quiet --language en \
  --output-dir "$work/sweep" > "$work/said"
cp "$work/sweep/pictures/gain-variation.svg" "$here/variation.svg"
