#!/usr/bin/env bash
# Builds a program of the workspace as the tests have it, so that one build serves both; prints its path.
#
# Usage: scripts/built.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || {
    echo "usage: $0 PROGRAM" >&2
    exit 2
}
# With an example cargo turns on the features of development dependencies, as it does for tests.
cargo build --quiet --workspace --all-features --profile test --example quickstart --bin "$1" >&2
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
echo "$target/debug/$1"
