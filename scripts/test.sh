#!/usr/bin/env bash
# Runs all tests: units, models, faults, end to end, and the examples in the documentation.
#
# Usage: scripts/test.sh [arguments for cargo]
#
# With KUBECONFIG set, the end-to-end tests and the examples run on that cluster instead of the embedded
# one; they create namespaces and CRDs of their own and delete them again.
#
# It needs a Rust toolchain, a C compiler, python3 with pip and venv, node with npm, Chromium, PostgreSQL, Prometheus and
# tmux. It puts kubectl, clients of Python and JavaScript, axe-core and, from Debian's package, Prometheus into the target
# folder if they are not there yet, and installs, as root on Debian, the packages of Chromium, PostgreSQL and tmux; it says so
# before, and installs nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo >/dev/null || {
    echo "cargo is not installed; Lariat needs a Rust toolchain" >&2
    exit 1
}
command -v cc >/dev/null || {
    echo "cc is not installed; TLS, zstd and SQLite need a C compiler (Debian: apt install gcc libc6-dev)" >&2
    exit 1
}

# What the end-to-end tests run beside what is built.
scripts/kubectl.sh >/dev/null
scripts/clients.sh >/dev/null
# What the tests of the page run in.
CHROMIUM=$(scripts/chromium.sh)
export CHROMIUM
# What finds faults of accessibility in it.
scripts/axe.sh >/dev/null
# In its terminals the tests look at `lariat top`.
scripts/tmux.sh >/dev/null

# A Prometheus that scrapes a program in tests.
scripts/prometheus.sh >/dev/null

# Tests of the SQL cache that replicas share start servers of it.
scripts/postgres.sh >/dev/null

# A snapshot that differs is a failure; to accept it, run the test with INSTA_UPDATE=always.
export INSTA_UPDATE=${INSTA_UPDATE:-no}

# What the end-to-end tests run, so that no test waits for a build; with the profile of the tests, so that nothing is built
# twice.
cargo build --workspace --all-features --profile test --bins --examples "$@"

# cargo-nextest is faster and shows less, where it is installed.
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --all-features "$@"
else
    cargo test --workspace --all-features --lib --bins --tests "$@"
fi
cargo test --workspace --all-features --doc "$@"
