#!/usr/bin/env bash
# Finds spelling mistakes with typos, which it installs into the target folder by pip.
#
# Usage: scripts/typos.sh [arguments for typos, such as --write-changes]
#
# Exceptions are in _typos.toml.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.52.0
target=${CARGO_TARGET_DIR:-target}
folder=$target/typos-$version
if [ ! -x "$folder/bin/typos" ]; then
    echo "installing typos $version (of PyPI) into $folder" >&2
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check "typos==$version" || {
        rm -rf "$folder"
        exit 1
    }
fi
exec "$folder/bin/typos" "$@"
