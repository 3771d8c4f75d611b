#!/usr/bin/env bash
# Writes the lock files again, after the versions in scripts/locks/*.in and scripts/locks/*/package.json have changed.
#
# Usage: scripts/locks/renew.sh
#
# The locks have the hash of every package, also of those that others need, and no address of a registry: pip and npm
# take the packages from the one that is configured. It installs pip-tools into a temporary folder, with python3 and pip.
set -euo pipefail
cd "$(dirname "$0")"

draft=$(mktemp -d)
trap 'rm -rf "$draft"' EXIT
python3 -m venv "$draft"
"$draft/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "pip-tools==7.6.2" >&2
for names in *.in; do
    "$draft/bin/pip-compile" --quiet --upgrade --generate-hashes --strip-extras --no-header --no-annotate \
        --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --pip-args "--only-binary :all:" \
        --output-file "${names%.in}.txt" "$names"
done
for folder in */; do
    rm -f "$folder/package-lock.json"
    npm install --silent --package-lock-only --ignore-scripts --no-audit --no-fund \
        --omit-lockfile-registry-resolved=true --prefix "$folder"
done
