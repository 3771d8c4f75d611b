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

# Lints, features and documentation go without the flags of `.cargo/config.toml`: no library may use the API that tokio
# has with `--cfg tokio_unstable` alone.
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
# Checks packages with the features that are named, such as `lariat/operator`. Two packages that do not use each other
# keep both processors busy.
checked() {
    local each packages=(--package lariat-features)
    for each in "$@"; do packages+=(--package "${each%/*}"); done
    cargo check --quiet "${packages[@]}" --no-default-features --features "$*"
}
for features in operator fleet rustls-tls cluster metrics console logging otlp sim sql sql-http sql-postgres webhook; do
    checked "lariat/$features"
done
checked lariat/console lariat/operator
checked lariat/webhook lariat/metrics
checked lariat-cluster/client lariat-operator/apply
checked lariat-cluster/sqlite lariat-operator/crd
checked lariat-cluster/signatures lariat-operator/events
checked lariat-cluster/tls lariat-operator/guard
checked lariat-cluster/descriptions lariat-operator/rbac
checked lariat-cluster/printers lariat-client/rustls-tls
checked lariat-cluster/workloads lariat-cache/rustls-tls
checked lariat-cluster/load lariat-cache/kube-runtime
checked lariat-cluster/protobuf lariat-controller/metrics
for features in server tls; do checked "lariat-http/$features"; done
for features in server logging otlp; do checked "lariat-console/$features"; done
checked lariat-console/server lariat-console/operator
checked lariat-webhook/metrics
for features in http postgres; do checked "lariat-sql/$features"; done
for features in "" console webhook; do
    cargo check --quiet --package lariat-features --package lariat-examples --examples \
        --features "${features:+lariat-examples/$features}"
done
cargo check --quiet --package lariat-features --package lariat-operators --examples

step documentation
RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --all-features

unset RUSTFLAGS

step packages
scripts/package.sh

step tests
scripts/test.sh --all
