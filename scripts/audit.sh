#!/usr/bin/env bash
# What a release needs beside scripts/check.sh: dependencies, features one by one, the oldest Rust, compatibility.
#
# Usage: scripts/audit.sh [deny|features|msrv|semver|package]…   (default: all)
#
# It installs cargo-deny, cargo-hack and cargo-semver-checks by cargo where they are missing. `deny` fetches the
# database of advisories, `msrv` needs the toolchain of rust-version by rustup, and `semver` a tag to compare with; a
# step whose need is not met says so and is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

# Installs a program of cargo in a version, with the versions of its lock file.
tool() {
    command -v "$1" >/dev/null || {
        echo "installing $1 $2" >&2
        cargo install --locked --quiet --version "$2" "$1"
    }
}

deny() {
    step "licences, bans, sources, advisories"
    tool cargo-deny 0.20.2
    cargo deny --workspace check --hide-inclusion-graph bans licenses sources
    cargo deny --workspace check --hide-inclusion-graph advisories || {
        [ -z "${OFFLINE:-}" ] && exit 1
        echo "advisories were not checked: OFFLINE is set" >&2
    }
}

features() {
    step "each feature alone"
    tool cargo-hack 0.6.44
    cargo hack check --workspace --each-feature --no-dev-deps --quiet
}

msrv() {
    local version
    version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    step "Rust $version"
    if rustup run "$version" rustc --version >/dev/null 2>&1; then
        cargo "+$version" check --workspace --all-features --lib --bins
    else
        echo "left out: rustup has no toolchain $version" >&2
    fi
}

semver() {
    local tag
    tag=$(git describe --tags --abbrev=0 2>/dev/null || true)
    step "compatibility with ${tag:-the last release}"
    if [ -n "$tag" ]; then
        tool cargo-semver-checks 0.50.0
        cargo semver-checks --workspace --baseline-rev "$tag"
    else
        echo "left out: there is no tag yet" >&2
    fi
}

package() {
    step "packages"
    scripts/package.sh --verify
}

[ $# -gt 0 ] || set -- deny features msrv semver package
for name in "$@"; do
    case $name in
    deny | features | msrv | semver | package) "$name" ;;
    *)
        echo "usage: $0 [deny|features|msrv|semver|package]…" >&2
        exit 2
        ;;
    esac
done
