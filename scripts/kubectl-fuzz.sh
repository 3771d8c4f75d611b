#!/usr/bin/env bash
# Compares kubeconfigs and YAML of random seeds with kubectl, for a bounded time.
#
# Usage: scripts/kubectl-fuzz.sh [--seconds N] [--from N] [--seed SEED TEST]
#
# The seeds are others each time, or those that follow from the number of --from.
# The tests run for N seconds (60 by default), all at the same time. A seed is printed before it is compared, so the last
# one of a test that fails is the one to repeat; TEST is a part of the test's name.
set -euo pipefail
cd "$(dirname "$0")/.."

usage="usage: scripts/kubectl-fuzz.sh [--seconds N] [--from N] [--seed SEED TEST]"
seconds=60
from=
seed=
tests=random
while [ $# -gt 0 ]; do
    case $1 in
    --seconds)
        seconds=${2:-}
        shift
        ;;
    --from)
        from=${2:-}
        [[ $from =~ ^[0-9]+$ ]] || { echo "--from needs a number" >&2; exit 2; }
        shift
        ;;
    --seed)
        seed=${2:-}
        tests=${3:-}
        [[ $seed =~ ^[0-9]+$ && -n $tests ]] || { echo "$usage" >&2; exit 2; }
        shift 2
        ;;
    *) echo "unknown option $1; $usage" >&2; exit 2 ;;
    esac
    shift
done
[[ $seconds =~ ^[0-9]+$ ]] || { echo "--seconds needs a number of seconds" >&2; exit 2; }

scripts/kubectl.sh >/dev/null
# With the features of `scripts/test.sh`, so that nothing is built twice.
# All at the same time: they mostly wait for kubectl.
LARIAT_KUBECTL_SECONDS=$seconds LARIAT_KUBECTL_FROM=$from LARIAT_KUBECTL_SEED=$seed \
    cargo test --workspace --all-features --test kubectl -- --test-threads 4 "$tests"
