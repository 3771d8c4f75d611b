#!/usr/bin/env bash
# Puts known bugs back, one at a time, and counts the seeds the simulator needs to find each.
#
# Usage: scripts/planted.sh [NAME...]
#
# NAME is a file of integration/simulation/tests/planted, with or without its ending; without names all of them are tried.
# The script fails if a bug is not found, or if a patch does not apply or build. LARIAT_PLANTED_SEEDS is the number of
# seeds to try (2000). What the simulator printed is in target/planted/NAME.log, the table in target/planted/table.md.
#
# The patches are applied to HEAD, in a worktree with a target folder of its own below the target folder: the folder
# that is worked in is neither read nor changed, but for the patches, and its build stays warm.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${LARIAT_PLANTED_SEEDS:-2000}
root=$PWD
patches=$root/integration/simulation/tests/planted
mkdir -p "${CARGO_TARGET_DIR:-target}/planted"
output=$(cd "${CARGO_TARGET_DIR:-target}/planted" && pwd)
tree=$output/tree
export CARGO_TARGET_DIR=$output/build

# As `scripts/simulate.sh` builds it. Seeds are counted from zero; at the first that fails it says
# `seed N fails`, and on the next line when, and after a space the checker, a colon and what was found.
profile=${LARIAT_SIMULATE_PROFILE:-simulate}
folder=$profile
if [ "$profile" = dev ]; then folder=debug; fi
simulator=$CARGO_TARGET_DIR/$folder/simulate
arguments=(--seeds "$seeds" --stop-at-first --no-shrink)

fail() {
    echo "$*" >&2
    exit 2
}

git rev-parse --git-dir >/dev/null 2>&1 || fail "$root is not a git work tree, so no other can be made of it"

names=()
for name in "$@"; do
    name=$(basename "$name" .patch)
    [ -f "$patches/$name.patch" ] || fail "there is no $name.patch in $patches"
    names+=("$name")
done
if [ ${#names[@]} -eq 0 ]; then
    for patch in "$patches"/*.patch; do
        names+=("$(basename "$patch" .patch)")
    done
fi

# One that is left from an earlier run is used again, as HEAD is now; files that cargo has not seen change keep their
# times, so only what differs is built.
if [ -e "$tree/.git" ]; then
    git -C "$tree" reset --quiet --hard
    git -C "$tree" checkout --quiet --detach "$(git rev-parse HEAD)"
else
    git worktree add --quiet --force --detach "$tree" HEAD
fi
# Whatever happens, no patch stays applied.
trap 'git -C "$tree" reset --quiet --hard' EXIT

table=$output/table.md
missed=0
row() {
    printf '| %-36s | %19s | %-32s | %7s |\n' "$@" | tee -a "$table"
}
: >"$table"
row "planted bug" "seeds until found" "checker" "seconds"
row "---" "--:" "---" "--:"

# Tries one bug; prints its row.
try() {
    local name=$1 log=$output/$1.log status=0 began line seed checker
    if ! git -C "$tree" apply "$patches/$name.patch" 2>"$log"; then
        row "$name" "does not apply" "" ""
        return 1
    fi
    # Built apart: the time that is shown is the simulator's.
    if ! (cd "$tree" && cargo build --quiet --profile "$profile" --package lariat-simulation --bin simulate) >"$log" 2>&1; then
        row "$name" "does not build" "" ""
        return 1
    fi
    # The bugs of replicas say so in their heads.
    local trial=()
    if grep -q '^# Tried with: --replicas$' "$patches/$name.patch"; then trial=(--replicas); fi
    began=$SECONDS
    "$simulator" "${trial[@]}" "${arguments[@]}" >"$log" 2>&1 || status=$?
    # Several run at a time, so the first line need not be of the lowest seed.
    seed=$(sed -nE 's/^seed ([0-9]+) fails$/\1/p' "$log" | sort -n | head -n 1)
    if [ "$status" -gt 1 ]; then
        row "$name" "the runner failed" "" $((SECONDS - began))
        return 1
    elif [ -z "$seed" ]; then
        row "$name" "not in $seeds" "" $((SECONDS - began))
        return 1
    fi
    line=$(grep -A 1 -m 1 -x "seed $seed fails" "$log" | tail -n 1)
    checker=$(sed -E 's/^ *[0-9.]+s ([^:]+):.*/\1/' <<<"$line")
    row "$name" $((seed + 1)) "$checker" $((SECONDS - began))
}

for name in "${names[@]}"; do
    try "$name" || missed=$((missed + 1))
    git -C "$tree" reset --quiet --hard
done

if [ "$missed" -gt 0 ]; then
    echo "$missed of ${#names[@]} were not found; what the simulator printed is in $output" >&2
    exit 1
fi
