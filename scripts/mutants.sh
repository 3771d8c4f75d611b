#!/usr/bin/env bash
# Changes the state machines of the heart in one place at a time, and lists the changes that no test notices.
#
# Usage: scripts/mutants.sh [queue|cache|lease|life] [OPTIONS of cargo mutants…]
#
# Without an argument all four are tried, which takes hours. The results are in target/mutants/NAME/mutants.out. HEAD is
# tried, in a worktree below the target folder, without the crates' dev-dependency on `lariat`: only the examples of the
# documentation need it, and with it every change would build all crates again.
#
# It needs cargo-mutants and cargo-nextest, and installs neither.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo mutants --version >/dev/null 2>&1 || {
    echo "cargo-mutants is missing: cargo install cargo-mutants --version 27.1.0 --locked" >&2
    exit 2
}
mkdir -p "${CARGO_TARGET_DIR:-target}/mutants"
output=$(cd "${CARGO_TARGET_DIR:-target}/mutants" && pwd)
tree=$output/tree
export CARGO_TARGET_DIR=$output/build
if [ -e "$tree/.git" ]; then
    git -C "$tree" reset --quiet --hard
    git -C "$tree" checkout --quiet --detach "$(git rev-parse HEAD)"
else
    git worktree add --quiet --force --detach "$tree" HEAD
fi
sed -i '/^lariat = { path = /d' "$tree"/crates/{queue,cache,lease,controller}/Cargo.toml

# Tries the files of a part; the arguments after the crate are those of cargo mutants.
try() {
    local name=$1 crate=$2
    shift 2
    (cd "$tree" && cargo mutants --in-place --no-shuffle --output "$output/$name" --package "$crate" "$@")
}

queue() { try queue lariat-queue -f 'crates/queue/src/core/*.rs' --cargo-arg=--lib "$@"; }
cache() { try cache lariat-cache -f crates/cache/src/store/table.rs --cargo-arg=--lib "$@" -- store::tests; }
lease() {
    local ring='{config,gains,gate,members,record,share,shards,state}.rs'
    try lease lariat-lease -f crates/lease/src/election.rs -f "crates/lease/src/ring/$ring" \
        --cargo-arg=--lib "$@"
}
life() {
    try life lariat-controller -f 'crates/controller/src/controller/{owner,crew,opened,leaving}.rs' \
        -f 'crates/controller/src/factory/{life,stop}.rs' --all-features --test-tool nextest "$@" -- \
        --test controller \
        -E '(test(ending) | test(kind_states) | test(lives::) | test(stopping) | test(pausing) | test(electing::)) - test(a_hundred)'
}

case ${1:-all} in
queue | cache | lease | life) "$@" ;;
all)
    status=0
    for part in queue cache lease life; do "$part" || status=$?; done
    exit "$status"
    ;;
*)
    echo "usage: scripts/mutants.sh [queue|cache|lease|life] [OPTIONS of cargo mutants…]" >&2
    exit 2
    ;;
esac
