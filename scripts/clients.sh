#!/usr/bin/env bash
# Installs the clients of other languages that the end-to-end tests run: Python's kubernetes and kopf, JavaScript's
# @kubernetes/client-node.
#
# Usage: scripts/clients.sh
#
# They land in the target folder (CARGO_TARGET_DIR, or target/), and stay there until that is cleaned. Nothing else is
# installed, and nothing outside of that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=$PWD/scripts/locks
# The version of a package in a file of pip.
pinned() { sed -n "s/^$1==\([^ ]*\).*/\1/p" "$locks/clients.in"; }
kubernetes=$(pinned kubernetes)
kopf=$(pinned kopf)
client_node=$(sed -n 's/.*"@kubernetes\/client-node": "\(.*\)".*/\1/p' "$locks/clients/package.json")
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
folder=$(cd "$target" && pwd)/clients-$kubernetes-$kopf-$client_node
if [ -e "$folder/complete" ]; then
    echo "$folder"
    exit 0
fi

python3 -c 'import venv, ensurepip' 2>/dev/null || {
    echo "python3 makes no virtual environments (Debian: apt install python3-venv)" >&2
    exit 1
}
command -v npm >/dev/null || {
    echo "npm is not installed, with which @kubernetes/client-node is fetched (Debian: apt install npm)" >&2
    exit 1
}
echo "installing kubernetes $kubernetes and kopf $kopf (of PyPI), @kubernetes/client-node $client_node (of npm) in $folder" >&2

# A virtual environment has the path of its folder in it, so it is made in place; the file `complete` comes last.
rm -rf "$folder"
python3 -m venv "$folder/python"
# Only what is in the lock files, with its hash: a package runs code when it is built or imported.
"$folder/python/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes \
    --requirement "$locks/clients.txt" >&2
mkdir "$folder/javascript"
cp "$locks"/clients/package*.json "$folder/javascript/"
npm ci --silent --ignore-scripts --no-audit --no-fund --prefix "$folder/javascript" >&2
touch "$folder/complete"
echo "$folder"
