#!/usr/bin/env bash
# Fetches axe-core, which finds faults of accessibility in pages, where the tests look for it, and prints its path.
#
# Usage: scripts/axe.sh
#
# It lands in the target folder (CARGO_TARGET_DIR, or target/), and stays there until that is cleaned. Nothing else is
# installed, and nothing outside of that folder. The program runs in the browser only.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=$PWD/scripts/locks/axe
version=$(sed -n 's/.*"axe-core": "\(.*\)".*/\1/p' "$locks/package.json")
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
axe=$(cd "$target" && pwd)/axe-core-$version/axe.min.js
if [ -f "$axe" ]; then
    echo "$axe"
    exit 0
fi

command -v npm >/dev/null || {
    echo "npm is not installed, with which axe-core is fetched (Debian: apt install npm)" >&2
    exit 1
}
echo "fetching axe-core $version (of npm) as $axe" >&2

# Made beside the place it goes to, so that it is there whole or not at all.
draft=$(mktemp -d "$(dirname "$axe").XXXXXX")
trap 'rm -rf "$draft"' EXIT
# The lock file has its hash.
cp "$locks"/package*.json "$draft/"
npm ci --silent --ignore-scripts --no-audit --no-fund --prefix "$draft" >&2
mkdir -p "$(dirname "$axe")"
mv "$draft/node_modules/axe-core/axe.min.js" "$axe"
echo "$axe"
