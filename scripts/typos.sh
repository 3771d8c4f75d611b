#!/usr/bin/env bash
# Finds spelling mistakes with typos, which it installs into the target folder by pip.
#
# Usage: scripts/typos.sh [arguments for typos, such as --write-changes]
#
# Exceptions are in _typos.toml.
set -euo pipefail
cd "$(dirname "$0")/.."

lock=$PWD/scripts/locks/typos.txt
version=$(sed -n 's/^typos==\([^ ]*\).*/\1/p' "$lock")
target=${CARGO_TARGET_DIR:-target}
folder=$target/typos-$version
if [ ! -x "$folder/bin/typos" ]; then
    echo "installing typos $version (of PyPI) into $folder" >&2
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes \
        --requirement "$lock" || {
        rm -rf "$folder"
        exit 1
    }
fi
exec "$folder/bin/typos" "$@"
