#!/usr/bin/env bash
# Prints where Chromium is, in which the tests look at pages. As root on Debian it installs it if it is missing.
#
# Usage: scripts/chromium.sh
set -euo pipefail

find_it() {
    local name
    for name in "${CHROMIUM:-chromium}" chromium chromium-browser google-chrome; do
        command -v "$name" && return
    done
    return 1
}

find_it && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium (of Debian), in which the tests look at pages" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet >&2
    apt-get install --yes --quiet --no-install-recommends chromium >&2
    find_it && exit
fi
echo "Chromium is not installed, in which the tests look at pages (Debian: apt install chromium); CHROMIUM may name another" >&2
exit 1
