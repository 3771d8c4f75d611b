#!/usr/bin/env bash
# Fuzzes targets one after the other, each for a bounded time; docs/fuzzing.md lists them.
#
# Usage: scripts/fuzz.sh [--seconds N] [TARGET…]
#
# Each target runs for N seconds (60 by default), all of them if none is named: those of the framework in fuzz/, those of
# the API server in cluster/fuzz/. What a run finds is kept in findings/TARGET there, where the tests of the package run
# it again; the script then ends with 1. Inputs that reach new code are kept in the target folder and are where the next
# run begins.
#
# It needs the toolchain Lariat is built with, and a C++ compiler for libFuzzer.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60
targets=()
while [ $# -gt 0 ]; do
    case $1 in
    --seconds)
        seconds=${2:-}
        [[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "--seconds needs a number of seconds" >&2; exit 2; }
        shift
        ;;
    -*) echo "unknown option $1; usage: scripts/fuzz.sh [--seconds N] [TARGET…]" >&2; exit 2 ;;
    *) targets+=("$1") ;;
    esac
    shift
done
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(basename -a fuzz/corpus/* cluster/fuzz/corpus/*)
fi

# Says which folder has the inputs of a target.
package_of() {
    local each
    for each in fuzz cluster/fuzz; do
        [ ! -d "$each/corpus/$1" ] || { echo "$each"; return; }
    done
    echo "there is no target $1; see fuzz/corpus and cluster/fuzz/corpus" >&2
    exit 2
}
for target in "${targets[@]}"; do package_of "$target" >/dev/null; done
command -v "${CXX:-c++}" >/dev/null || {
    echo "${CXX:-c++} is not installed; libFuzzer needs a C++ compiler (Debian: apt install g++)" >&2
    exit 1
}

# The instrumentation libFuzzer reads, which a stable compiler has too. RUSTFLAGS replaces the flags of .cargo/config.toml,
# so the one that is there comes first. The macro of libfuzzer-sys expands to an attribute that the lints of the
# workspace forbid, so lints are left to the ordinary build. With --target, build scripts are not instrumented.
llvm=(-sanitizer-coverage-level=4 -sanitizer-coverage-inline-8bit-counters
    -sanitizer-coverage-pc-table -sanitizer-coverage-trace-compares)
flags=(--cfg tokio_unstable --cfg fuzzing --cap-lints allow -C passes=sancov-module)
for each in "${llvm[@]}"; do flags+=(-C "llvm-args=$each"); done
host=$(rustc -vV | sed -n 's/^host: //p')
folder=$(cargo metadata --format-version 1 --no-deps | grep -o '"target_directory":"[^"]*"' | cut -d'"' -f4)/fuzz
RUSTFLAGS="${flags[*]}" cargo build --package lariat-fuzz --profile fuzz --target "$host" --target-dir "$folder"
binary=$folder/$host/fuzz/lariat-fuzz

# Runs a target; what libFuzzer says goes to a file.
run() {
    local target=$1 package grown=$folder/corpus/$1 artifacts=$folder/artifacts/$1 log=$folder/$1.log
    package=$(package_of "$target")
    rm -rf "$artifacts"
    mkdir -p "$grown" "$artifacts"
    local options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096
        -print_final_stats=1 -artifact_prefix="$artifacts/")
    local dictionary=$package/dictionaries/$target
    [ ! -f "$dictionary" ] || options+=(-dict="$dictionary")
    # The corpus is run first, and one input may take up to its timeout.
    LARIAT_FUZZ_TARGET=$target RUST_BACKTRACE=1 timeout --kill-after=10 $((seconds + 120)) \
        "$binary" "$grown" "$package/corpus/$target" "${options[@]}" >"$log" 2>&1
}

# Says how far a run came.
report() {
    local log=$folder/$1.log
    local runs rate coverage
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]* ft: [0-9]*' "$log" | tail -n 1 || true)
    printf '%-16s %10s executions %8s/s  %s\n' "$1" "${runs:-?}" "${rate:-?}" "${coverage:-no coverage}"
}

failed=0
for target in "${targets[@]}"; do
    outcome=0
    run "$target" || outcome=$?
    report "$target"
    [ "$outcome" -ne 0 ] || continue
    failed=1
    found=$(find "$folder/artifacts/$target" -type f ! -name 'slow-unit-*' | head -n 1)
    if [ -z "$found" ]; then
        echo "$target failed without an input (exit code $outcome); $folder/$target.log says more" >&2
        continue
    fi
    kept=$(package_of "$target")/findings/$target/$(basename "$found")
    mkdir -p "$(dirname "$kept")"
    cp "$found" "$kept"
    echo "$target found something; the input is kept in $kept" >&2
    grep -m 1 -A 3 -E "panicked at|^==[0-9]+== ERROR" "$folder/$target.log" >&2 || true
    echo "repeat it with: cargo run --package lariat-fuzz -- $target $kept" >&2
done
exit $failed
