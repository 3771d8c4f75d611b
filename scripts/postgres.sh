#!/usr/bin/env bash
# Installs the programs of a PostgreSQL server, which tests start for themselves, and prints their folder.
#
# Usage: scripts/postgres.sh
#
# They come from Debian's package `postgresql`, unless they are there. It needs root, or sudo without a password. No server is
# made or started: tests do that in folders of their own, and end it.
set -euo pipefail

bin() {
    find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -1 | xargs -r dirname
}

if [ -z "$(bin)" ]; then
    sudo=()
    if [ "$(id -u)" != 0 ]; then
        sudo=(sudo -n)
    fi
    command -v apt-get >/dev/null && "${sudo[@]}" true 2>/dev/null || {
        echo "PostgreSQL is not installed, and cannot be by this user (Debian: apt install postgresql)" >&2
        exit 1
    }
    echo "installing PostgreSQL (Debian's package postgresql)" >&2
    # Else the package makes a server and starts it.
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        "${sudo[@]}" mkdir -p /etc/postgresql-common
        echo "create_main_cluster = false" | "${sudo[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
    fi
    install=(env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends
        -o Dpkg::Options::=--force-confold postgresql)
    "${sudo[@]}" "${install[@]}" >&2 || {
        "${sudo[@]}" apt-get update --quiet >&2
        "${sudo[@]}" "${install[@]}" >&2
    }
fi
bin
