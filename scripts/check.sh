#!/usr/bin/env bash
# Runs what CI runs: formatting, lints, documentation, tests.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step formatting
cargo fmt --all --check

step lints
cargo clippy --workspace --all-targets --all-features -- --deny warnings

# Crates in which features leave code out, one feature set at a time.
step features
for features in "" rustls-tls cluster; do
    cargo check --quiet --package lariat --no-default-features --features "$features"
done
for crate in core cluster; do
    cargo check --quiet --package "lariat-$crate" --no-default-features
done

step documentation
RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --all-features

step tests
scripts/test.sh
