#!/usr/bin/env bash
# Prints where tmux is, in whose terminal the tests look at `lariat top`. As root on Debian it installs it if it is missing.
#
# Usage: scripts/tmux.sh
set -euo pipefail

command -v tmux && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing tmux (of Debian), in whose terminal the tests look at lariat top" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet >&2
    apt-get install --yes --quiet --no-install-recommends tmux >&2
    command -v tmux && exit
fi
echo "tmux is not installed, in whose terminal the tests look at lariat top (Debian: apt install tmux)" >&2
exit 1
