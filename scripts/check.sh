#!/usr/bin/env bash
# Runs what CI runs: formatting, lints, documentation, tests.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each step says how many seconds after the start it begins.
step() { printf '\n== %s (at %d s)\n' "$*" "$SECONDS"; }

step formatting
cargo fmt --all --check

step spelling
scripts/typos.sh

step "pinned actions and packages"
scripts/pins.sh

step "words in the documentation"
scripts/doc_counts.py

step lints
cargo clippy --workspace --all-targets --all-features -- --deny warnings

# Crates in which features leave code out, one feature set at a time. Without the flags of `.cargo/config.toml`: no library
# may use what tokio has with `--cfg tokio_unstable` alone.
step features
export RUSTFLAGS=
for features in "" operator fleet rustls-tls cluster metrics console "console operator" logging otlp sim sql sql-http sql-postgres webhook "webhook metrics"; do
    cargo check --quiet --package lariat --no-default-features --features "$features"
done
for features in "" rustls-tls; do
    cargo check --quiet --package lariat-client --no-default-features --features "$features"
done
for features in "" rustls-tls kube-runtime; do
    cargo check --quiet --package lariat-cache --no-default-features --features "$features"
done
for features in "" client sqlite signatures tls descriptions printers workloads load protobuf; do
    cargo check --quiet --package lariat-cluster --no-default-features --features "$features"
done
for features in "" apply crd events guard rbac; do
    cargo check --quiet --package lariat-operator --no-default-features --features "$features"
done
for features in "" metrics; do
    cargo check --quiet --package lariat-controller --no-default-features --features "$features"
done
for features in "" server tls; do
    cargo check --quiet --package lariat-http --no-default-features --features "$features"
done
for features in "" server "server operator" logging otlp; do
    cargo check --quiet --package lariat-console --no-default-features --features "$features"
done
for features in "" metrics; do
    cargo check --quiet --package lariat-webhook --no-default-features --features "$features"
done
for features in "" http postgres; do
    cargo check --quiet --package lariat-sql --no-default-features --features "$features"
done
cargo check --quiet --package lariat-core --no-default-features
cargo check --quiet --package lariat-apimachinery
for features in "" console webhook; do
    cargo check --quiet --package lariat-examples --examples --features "$features"
done
cargo check --quiet --package lariat-operators --examples
unset RUSTFLAGS

step documentation
RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --all-features

step packages
scripts/package.sh

step tests
scripts/test.sh --all
