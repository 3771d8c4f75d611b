#!/usr/bin/env bash
# Runs whole programs on Lariat in virtual time, seed after seed, and shows what did not hold.
#
# Usage: scripts/simulate.sh [--seeds N] [--minutes M] [--seed S] …; --help lists all options.
#
# The program is built as the tests have it: with all assertions, and with what it spends its time in optimized a little.
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(scripts/built.sh simulate)
exec "$program" "$@"
