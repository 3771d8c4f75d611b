#!/usr/bin/env bash
# Fetches axe-core, which finds faults of accessibility in pages, where the tests look for it, and prints its path.
#
# Usage: scripts/axe.sh
#
# It lands in the target folder (CARGO_TARGET_DIR, or target/), and stays there until that is cleaned. Nothing else is
# installed, and nothing outside of that folder. The program runs in the browser only.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.14.1
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
(cd "$draft" && npm pack --silent --ignore-scripts "axe-core@$version" >/dev/null && tar -xzf ./*.tgz)
mkdir -p "$(dirname "$axe")"
mv "$draft/package/axe.min.js" "$axe"
echo "$axe"
