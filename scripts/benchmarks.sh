#!/bin/sh
# Measures what docs/benchmarks.md and README.md show, kube-rs beside it: about forty minutes on two cores.
#
#   scripts/benchmarks.sh            everything
#   scripts/benchmarks.sh queue sync only these sections: queue sync ways large storm fanout latency relist reads cluster
#
# What is printed is in target/benchmarks/SECTION.txt too. Use the machine for nothing else meanwhile.
set -eu
cd "$(dirname "$0")/.."

sections=${*:-queue sync ways large storm fanout latency relist reads cluster}
runs=${LARIAT_BENCH_RUNS:-3}
bench=target/dist/lariat-bench
cargo build --profile dist -p lariat-bench -p lariat-cli
mkdir -p target/benchmarks

measure() {
    section=$1
    shift
    {
        printf '\n%s: lariat-bench run %s --runs %s\n' "$section" "$*" "$runs"
        "$bench" run "$@" --runs "$runs"
    } | tee -a "target/benchmarks/$section.txt"
}

for section in $sections; do
    : > "target/benchmarks/$section.txt"
    case $section in
    queue)
        measure queue queue --interleave
        ;;
    sync)
        measure sync sync --interleave --case metadata,typed --handlers 1,10 --subject lariat,kube-rs-shared,floor,floor-scan
        measure sync sync --case typed,metadata --handlers 10 --subject kube-rs
        measure sync sync --case metadata --handlers 10 --subject lariat-content
        ;;
    ways)
        measure ways sync --interleave --case metadata,typed --handlers 1 \
            --subject lariat,lariat-http2,lariat-lists,lariat-lists-plain,lariat-one-thread,lariat-reflector,kube-rs-reflector
        ;;
    large)
        measure large sync --case metadata,typed --handlers 10 --n 100000 --subject lariat
        ;;
    storm)
        measure storm storm --interleave --n 50000 --handlers 1,10 --subject lariat,kube-rs-shared,floor,floor-scan
        ;;
    fanout)
        measure fanout fanout --case typed,metadata --handlers 1,10,100 --subject lariat
        ;;
    latency)
        measure latency latency --interleave --case idle --handlers 1,10 --subject lariat,kube-rs-shared,floor
        ;;
    relist)
        measure relist relist --interleave --handlers 1,10 --subject lariat,kube-rs-shared
        ;;
    reads)
        measure reads reads --interleave
        ;;
    cluster)
        measure cluster cluster \
            --case start,idle,load,create,get,update,apply,delete,create-owned,create-pod,update-pod,watch,collect,empty
        ;;
    *)
        echo "unknown section: $section" >&2
        exit 2
        ;;
    esac
done
