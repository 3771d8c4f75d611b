#!/usr/bin/env bash
# Finds what CI and the scripts would run without a fixed hash: actions by tag, packages without a lock file.
#
# Usage: scripts/pins.sh
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
# Fails if there are such lines.
none() {
    [ -z "$2" ] || {
        printf '%s:\n%s\n' "$1" "$2" >&2
        failed=1
    }
}

none "actions without a commit and its version" \
    "$(grep -rnE '\buses:' .github crates/cli/template | grep -vE 'uses: \./|@[0-9a-f]{40} # v[0-9]' || true)"
none "addresses in a lock file; scripts/locks/renew.sh writes none" "$(grep -rn '"resolved"' scripts/locks || true)"
# The hashes follow on the next lines.
none "packages without a hash" "$(grep -nE '^[a-z0-9.-]+==' scripts/locks/*.txt | grep -v ' \\$' || true)"
for lock in scripts/locks/*/package-lock.json; do
    packages=$(grep -c '^    "node_modules/' "$lock")
    [ "$packages" = "$(grep -c '"integrity": "sha512-' "$lock")" ] || none "packages without a hash" "$lock"
done
none "scripts that install without the hashes of a lock file" \
    "$(grep -lE 'pip"?[" ].*(install|download)' scripts/*.sh scripts/*.py cluster/scripts/*.sh cluster/scripts/*.py | xargs grep -L -e --require-hashes || true)"
none "scripts that install without a lock file" "$(grep -nE 'npm (install|pack)' scripts/*.sh cluster/scripts/*.sh || true)"
exit $failed
