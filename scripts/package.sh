#!/usr/bin/env bash
# Packages every crate that is published, as `cargo publish` would, without a registry.
#
# Usage: scripts/package.sh [--verify]
#
# The packages are in target/package. With --verify each is unpacked and built from the packages of the others, which
# takes as long as a build of the workspace; without, manifests and files are checked.
set -euo pipefail
cd "$(dirname "$0")/.."

verify=(--no-verify)
if [ "${1:-}" = --verify ]; then
    verify=()
    shift
fi
[ $# -eq 0 ] || {
    echo "usage: $0 [--verify]" >&2
    exit 2
}
# A library leaves the choice of a Kubernetes version to programs; to build it alone, one is needed.
K8S_OPENAPI_ENABLED_VERSION=$(sed -n 's/^K8S_OPENAPI_ENABLED_VERSION = "\(.*\)"$/\1/p' .cargo/config.toml)
export K8S_OPENAPI_ENABLED_VERSION
published=()
while read -r name; do
    published+=(--package "$name")
done < <(cargo metadata --no-deps --format-version 1 |
    python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] != []:
        print(package["name"])')
rm -f "${CARGO_TARGET_DIR:-target}"/package/*.crate
# A working tree with changes is packaged too: CI and releases start from a clean one.
cargo package "${published[@]}" --allow-dirty --quiet "${verify[@]}"

# What a package needs beside its code: a licence, a README, and none of the files of tests that only a checkout has.
for package in "${CARGO_TARGET_DIR:-target}"/package/*.crate; do
    files=$(tar -tzf "$package")
    for file in LICENSE README.md; do
        grep -q "/$file\$" <<<"$files" || {
            echo "$package has no $file" >&2
            exit 1
        }
    done
done
