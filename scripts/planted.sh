#!/usr/bin/env bash
# Puts known bugs back, one at a time, and counts the seeds the simulator needs to find each.
#
# Usage: scripts/planted.sh [NAME...]
#
# NAME is a file of crates/lariat-sim/tests/planted, with or without its ending; without names all of them are tried.
# The script fails if a bug is not found, or if a patch does not apply or build. LARIAT_PLANTED_SEEDS is the number of
# seeds to try (2000). What the simulator printed is in target/planted/NAME.log, the table in target/planted/table.md.
#
# The patches are applied to HEAD, in a worktree with a target folder of its own below the target folder: the folder
# that is worked in is neither read nor changed, but for the patches, and its build stays warm.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${LARIAT_PLANTED_SEEDS:-2000}
root=$PWD
patches=$root/crates/lariat-sim/tests/planted
mkdir -p "${CARGO_TARGET_DIR:-target}/planted"
output=$(cd "${CARGO_TARGET_DIR:-target}/planted" && pwd)
tree=$output/tree
export CARGO_TARGET_DIR=$output/build

# Runs the simulator from the worktree. It exits with 0 if no seed fails, and with 1 at the first that does, after a
# line `seed N: CHECKER: message`, where seeds are counted from $first_seed. Any other end is a failure of the runner.
first_seed=0
simulator=(cargo run --quiet --package lariat-sim --bin simulate --) # <- the command, and …
arguments=(--seeds "$seeds" --stop-at-first)                         # <- … its arguments

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
    printf '| %-36s | %19s | %-24s | %7s |\n' "$@" | tee -a "$table"
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
    if ! (cd "$tree" && cargo build --quiet --package lariat-sim --bins) >"$log" 2>&1; then
        row "$name" "does not build" "" ""
        return 1
    fi
    began=$SECONDS
    (cd "$tree" && "${simulator[@]}" "${arguments[@]}") >"$log" 2>&1 || status=$?
    line=$(grep -m 1 -E '^seed [0-9]+: [^:]+: ' "$log" || true)
    if [ "$status" -eq 0 ]; then
        row "$name" "not in $seeds" "" $((SECONDS - began))
        return 1
    elif [ "$status" -ne 1 ] || [ -z "$line" ]; then
        row "$name" "the runner failed" "" $((SECONDS - began))
        return 1
    fi
    seed=${line#seed }
    seed=${seed%%:*}
    checker=${line#seed *: }
    checker=${checker%%:*}
    row "$name" $((seed - first_seed + 1)) "$checker" $((SECONDS - began))
}

for name in "${names[@]}"; do
    try "$name" || missed=$((missed + 1))
    git -C "$tree" reset --quiet --hard
done

if [ "$missed" -gt 0 ]; then
    echo "$missed of ${#names[@]} were not found; what the simulator printed is in $output" >&2
    exit 1
fi
