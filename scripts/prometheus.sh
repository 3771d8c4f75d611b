#!/usr/bin/env bash
# Installs the programs prometheus and promtool, from Debian's package, where the tests look for them, and prints their folder.
#
# Usage: scripts/prometheus.sh
#
# They land in the target folder (CARGO_TARGET_DIR, or target/), and stay there until that is cleaned. The package is
# downloaded and unpacked, not installed: no user is made, and no service is started. It needs apt-get, not root; PROMETHEUS
# may name a folder that has both programs.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -n "${PROMETHEUS:-}" ] && [ -x "$PROMETHEUS/prometheus" ] && [ -x "$PROMETHEUS/promtool" ]; then
    echo "$PROMETHEUS"
    exit 0
fi
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
folder=$(cd "$target" && pwd)/prometheus
if [ -x "$folder/prometheus" ] && [ -x "$folder/promtool" ]; then
    echo "$folder"
    exit 0
fi

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo "Prometheus is not there, which scrapes programs in tests; PROMETHEUS may name the folder of prometheus and promtool" >&2
    exit 1
}
echo "unpacking prometheus (Debian's package) in $folder" >&2

# Made beside the place it goes to, so that it is there whole or not at all.
draft=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$draft"' EXIT
download() { (cd "$draft" && apt-get download --quiet prometheus >&2); }
download || {
    # The lists of packages may be missing or too old.
    apt-get update --quiet >&2
    download
}
dpkg-deb --extract "$draft"/prometheus_*.deb "$draft/package"
rm -rf "$folder"
mkdir "$draft/programs"
mv "$draft/package/usr/bin/prometheus" "$draft/package/usr/bin/promtool" "$draft/programs"
mv "$draft/programs" "$folder"
echo "$folder"
