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

# What is only checked, and not run, is built without the flags of `.cargo/config.toml`: no library may use what tokio has
# with `--cfg tokio_unstable` alone.
export RUSTFLAGS=

step lints
cargo clippy --workspace --all-targets --all-features -- --deny warnings

# Libraries without their features, each alone, so that it asks for all it needs of its dependencies. `scripts/audit.sh`
# tries each feature so.
step libraries
for package in core client cache controller operator http console webhook sql cluster; do
    cargo check --quiet --package "lariat-$package" --no-default-features
done
cargo check --quiet --package lariat --no-default-features
cargo check --quiet --package lariat-apimachinery

# Crates in which features leave code out, one set of features at a time. With `lariat-features` beside it a crate has the
# dependencies that the lints have built.
step features
scripts/features.py --check
# Checks a package with some of its features.
features_of() {
    local package=$1
    shift
    cargo check --quiet --package lariat-features --package "$package" --no-default-features \
        --features "${*/#/$package/}"
}
for features in operator fleet rustls-tls cluster metrics console "console operator" logging otlp sim sql sql-http sql-postgres webhook "webhook metrics"; do
    features_of lariat $features
done
for features in rustls-tls kube-runtime; do features_of lariat-cache $features; done
features_of lariat-client rustls-tls
for features in client sqlite signatures tls descriptions printers workloads load protobuf; do
    features_of lariat-cluster $features
done
for features in apply crd events guard rbac; do features_of lariat-operator $features; done
features_of lariat-controller metrics
for features in server tls; do features_of lariat-http $features; done
for features in server "server operator" logging otlp; do features_of lariat-console $features; done
features_of lariat-webhook metrics
for features in http postgres; do features_of lariat-sql $features; done
for features in "" console webhook; do
    cargo check --quiet --package lariat-features --package lariat-examples --examples --features "${features:+lariat-examples/$features}"
done
cargo check --quiet --package lariat-features --package lariat-operators --examples

step documentation
RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --all-features

unset RUSTFLAGS

step packages
scripts/package.sh

step tests
scripts/test.sh --all
