#!/usr/bin/env bash
# Runs whole programs on Lariat in virtual time, seed after seed, and shows what did not hold.
#
# Usage: scripts/simulate.sh [--seeds N] [--minutes M] [--seed S] …; --help lists all options.
#
# It builds with the profile `simulate`: all assertions, and optimized enough for thousands of seeds.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${LARIAT_SIMULATE_PROFILE:-simulate}
cargo build --quiet --package lariat-simulation --bin simulate --profile "$profile"
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
folder=$profile
if [ "$profile" = dev ]; then folder=debug; fi
exec "$target/$folder/simulate" "$@"
